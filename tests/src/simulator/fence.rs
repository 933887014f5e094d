//! The cluster's fence: it keeps a connection to every node, writes a marker after it was asked, another as the first one's
//! effect shows at a node, and tells of a node where the second one's shows too, by the same process. It may be away for a while:
//! then its connections are gone, and it is asked anew.

use lastsyn::core::{clock::Monotonic, cluster::FenceRequest, listener::Family};

use super::{
    api::{MOST_SLICES, ObjectId},
    chance::{Chance, Stream},
    kube_proxy::{KubeProxy, Scene, place},
    node::{Health, NodeId, Writing},
    schedule::{Event, FenceEvent},
    timeline::name,
};

/// The fence.
#[derive(Debug)]
pub(super) struct Fence {
    chance: Chance,
    families: &'static [Family],
    newest: Option<FenceRequest>,
    /// The last marker of each family.
    written: [u32; 2],
    stages: Vec<[Stage; 2]>,
    write_planned: bool,
    away_until: Monotonic,
}

/// How far it is with one node and family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no connection.
    Closed,
    /// There is one, to this process, and the first marker is to be written.
    Open {
        process: u32,
    },
    First {
        process: u32,
        request: FenceRequest,
        marker: u32,
    },
    /// The first one's effect shows, and the second is to be written.
    Seen {
        process: u32,
        request: FenceRequest,
    },
    Second {
        process: u32,
        request: FenceRequest,
        marker: u32,
    },
    Shown {
        process: u32,
        request: FenceRequest,
    },
}

/// The slice that the fence writes for a family.
pub(super) fn marker(family: Family) -> ObjectId {
    ObjectId(MOST_SLICES - 2 + place(family))
}

impl Fence {
    pub(super) fn new(seed: u64, nodes: usize, families: &'static [Family]) -> Self {
        Self {
            chance: Chance::of(seed, Stream::Fence),
            families,
            newest: None,
            written: [0; 2],
            stages: vec![[Stage::Closed; 2]; nodes],
            write_planned: false,
            away_until: Monotonic::default(),
        }
    }

    /// A request arrives: only markers that are written from now on count for it.
    pub(super) fn asked(&mut self, request: FenceRequest, scene: &mut Scene<'_>) {
        if self.newest.is_none() {
            scene.schedule.add(scene.now, Event::Fence(FenceEvent::Look));
        }
        self.newest = self.newest.max(Some(request));
        for stage in self.stages.iter_mut().flatten() {
            if let Some(process) = stage.process() {
                *stage = Stage::Open { process };
            }
        }
        self.plan_write(scene);
    }

    /// It dies, and is back at a time.
    pub(super) fn goes_away(&mut self, until: Monotonic) {
        self.away_until = self.away_until.max(until);
        for stage in self.stages.iter_mut().flatten() {
            *stage = Stage::Closed;
        }
    }

    /// Whether nothing answers where it is.
    pub(super) fn is_away(&self, now: Monotonic) -> bool {
        now < self.away_until
    }

    /// Whether a node can show it nothing: what answers there is no kube-proxy.
    pub(super) fn cannot_see(proxy: &KubeProxy) -> bool {
        proxy.profile.health == Health::NoStatus
    }

    /// Which markers are to be written now: of each family the next number, where a node waits for one.
    pub(super) fn writes(&mut self) -> Vec<(Family, u32)> {
        self.write_planned = false;
        let Some(newest) = self.newest else { return Vec::new() };
        let mut writes = Vec::new();
        for family in self.families {
            let next = self.written[place(*family)] + 1;
            let mut waited_for = false;
            for stages in &mut self.stages {
                let stage = &mut stages[place(*family)];
                *stage = match *stage {
                    Stage::Open { process } => Stage::First { process, request: newest, marker: next },
                    Stage::Seen { process, request } => Stage::Second { process, request, marker: next },
                    _ => continue,
                };
                waited_for = true;
            }
            if waited_for {
                self.written[place(*family)] = next;
                writes.push((*family, next));
            }
        }
        writes
    }

    /// Looks at every node.
    pub(super) fn look(&mut self, proxies: &[KubeProxy], scene: &mut Scene<'_>) {
        let mut writes = false;
        let away = self.is_away(scene.now);
        let seen = |proxy: &&KubeProxy| !away && !Self::cannot_see(proxy);
        for (proxy, stages) in proxies.iter().zip(&mut self.stages).filter(|(proxy, _)| seen(proxy)) {
            for family in self.families {
                let stage = &mut stages[place(*family)];
                let next = stage.look(proxy, *family, scene.now);
                if next != *stage {
                    let id = proxy.id;
                    scene.timeline.note(scene.now, || format!("fence: {} {family}: {next:?}", name(id)));
                }
                writes |= matches!(next, Stage::Open { .. } | Stage::Seen { .. });
                *stage = next;
            }
        }
        if writes {
            self.plan_write(scene);
        }
        let again = scene.now + self.chance.ms(80, 250);
        scene.schedule.add(again, Event::Fence(FenceEvent::Look));
    }

    /// Where both markers have shown, by a process that still answers.
    pub(super) fn shown(&self, proxies: &[KubeProxy], now: Monotonic) -> Vec<(NodeId, Family, FenceRequest)> {
        let mut shown = Vec::new();
        for (proxy, stages) in proxies.iter().zip(&self.stages) {
            for family in self.families {
                if let Stage::Shown { process, request } = stages[place(*family)]
                    && proxy.up
                    && proxy.process == process
                    && !proxy.is_frozen(now)
                {
                    shown.push((proxy.id, *family, request));
                }
            }
        }
        shown
    }

    fn plan_write(&mut self, scene: &mut Scene<'_>) {
        if !std::mem::replace(&mut self.write_planned, true) {
            let soon = scene.now + self.chance.ms(1, 60);
            scene.schedule.add(soon, Event::Fence(FenceEvent::Write));
        }
    }
}

impl Stage {
    fn process(self) -> Option<u32> {
        match self {
            Self::Closed => None,
            Self::Open { process }
            | Self::First { process, .. }
            | Self::Seen { process, .. }
            | Self::Second { process, .. }
            | Self::Shown { process, .. } => Some(process),
        }
    }

    fn look(self, proxy: &KubeProxy, family: Family, now: Monotonic) -> Self {
        if !proxy.up || self.process().is_some_and(|process| process != proxy.process) {
            return Self::Closed;
        }
        if proxy.is_frozen(now) {
            return self;
        }
        // Rules that are written all at once show it too, as long as the connection shows whose they are.
        let in_rules = proxy.profile.writing == Writing::AtOnce;
        let shows = if in_rules { proxy.rules(family).marker } else { proxy.shown(family) };
        match self {
            Self::Closed => Self::Open { process: proxy.process },
            Self::First { process, request, marker } if shows >= marker => Self::Seen { process, request },
            Self::Second { process, request, marker } if shows >= marker => Self::Shown { process, request },
            same => same,
        }
    }
}
