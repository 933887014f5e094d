//! One node's kube-proxy, and the rules that it leaves in the kernel.
//!
//! Order of things in the source (Kubernetes 1.29 to 1.37): the handlers take changes one by one; a sync takes one
//! snapshot of what they have, writes it, stamps (`Updated()`, which deletes the pending time whatever it belongs to),
//! and sets the health-check node ports. A process stamps as it starts, before it has listed anything; until then its
//! health server answers without a status.

mod feed;
mod health;
mod process;
mod proxier;
mod sync;

use std::time::Duration;

use lastsyn::core::{clock::Monotonic, listener::Family};

use self::{
    feed::{Feed, Taken},
    proxier::Proxier,
};
pub(super) use self::{
    health::Answer,
    proxier::{Rules, place},
};
use super::{
    api::{Api, Content, MOST_SERVICES},
    chance::{Chance, Stream},
    node::{BOUNDS, Broken, FirstList, NodeId, Profile},
    schedule::{Event, Schedule},
    timeline::{Timeline, name},
};

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProxyEvent {
    /// The watch delivers a write to a slice.
    ReceiveSlice,
    /// The watch delivers a write to a Service.
    ReceiveService,
    /// The handlers take what waits.
    Handle,
    /// The stamp of its start.
    Stamp,
    /// Its first lists are with the handlers.
    FirstList,
    /// A change of something else.
    Unrelated,
    StartSync(Family),
    /// The sync writes, or in part.
    Write(Family),
    EndSync(Family),
}

/// What a component needs of the rest of the world.
pub(super) struct Scene<'a> {
    pub(super) now: Monotonic,
    pub(super) api: &'a Api,
    pub(super) schedule: &'a mut Schedule,
    pub(super) timeline: &'a mut Timeline,
}

/// kube-proxy on one node.
#[derive(Clone, Debug)]
pub(super) struct KubeProxy {
    pub(super) id: NodeId,
    pub(super) profile: Profile,
    chance: Chance,
    families: &'static [Family],
    /// Which process: 1 for the first; it stays when that dies.
    pub(super) process: u32,
    pub(super) up: bool,
    /// The machine has left the cluster.
    gone: bool,
    started: Monotonic,
    /// What its watch of the slices brought; `None` until the first list.
    feed: Option<Feed>,
    /// How many Service writes the handlers have.
    services: u32,
    proxiers: [Proxier; 2],
    rules: [Rules; 2],
    /// How many endpoints of each Service are ready here: what its `healthCheckNodePort` answers.
    local: [u64; MOST_SERVICES],
    frozen_until: Monotonic,
    cut_until: Monotonic,
    /// The cut ends with a list.
    relists: bool,
    failures: u32,
    clock_stepped: i128,
    broken: Broken,
}

impl KubeProxy {
    /// One that has been up for long and has everything that was written so far.
    pub(super) fn new(
        id: NodeId,
        profile: Profile,
        families: &'static [Family],
        seed: u64,
        api: &Api,
        now: Monotonic,
    ) -> Self {
        let mut proxy = Self {
            id,
            profile,
            chance: Chance::of(seed, Stream::Node(id.0)),
            families,
            process: 1,
            up: profile.there,
            gone: false,
            started: now,
            feed: profile.there.then(|| Feed::listed(profile.queue, api.written(), api)),
            services: u32::try_from(api.services.len()).unwrap_or(u32::MAX),
            proxiers: [Proxier::default(); 2],
            rules: [Rules::default(); 2],
            local: [0; MOST_SERVICES],
            frozen_until: now,
            cut_until: now,
            relists: false,
            failures: 0,
            clock_stepped: 0,
            broken: Broken::default(),
        };
        if profile.there {
            proxy.settle(api, now);
        }
        proxy
    }

    /// The process of this number does something, unless it is no more.
    pub(super) fn take(&mut self, process: u32, event: ProxyEvent, scene: &mut Scene<'_>) {
        if process != self.process || !self.up {
            return;
        }
        let watches = matches!(event, ProxyEvent::ReceiveSlice | ProxyEvent::ReceiveService);
        let held = if watches { self.frozen_until.max(self.cut_until) } else { self.frozen_until };
        if scene.now < held {
            scene.schedule.add(held, Event::Proxy(self.id, process, event));
            return;
        }
        match event {
            ProxyEvent::ReceiveSlice => self.receive_slice(scene),
            ProxyEvent::ReceiveService => self.receive_service(scene),
            ProxyEvent::Handle => self.handle(scene),
            ProxyEvent::Stamp => self.stamp_start(scene),
            ProxyEvent::FirstList => self.first_list(scene),
            ProxyEvent::Unrelated => self.unrelated(scene),
            ProxyEvent::StartSync(family) => self.start_sync(family, scene),
            ProxyEvent::Write(family) => self.write_early(family, scene),
            ProxyEvent::EndSync(family) => self.end_sync(family, scene),
        }
    }

    /// A slice was written: its watch will deliver it.
    pub(super) fn slice_written(&mut self, scene: &mut Scene<'_>) {
        if self.up && self.feed.is_some() {
            let lag = self.chance.waiting(self.profile.lag.0, self.profile.lag.1);
            self.plan(scene.now + lag, ProxyEvent::ReceiveSlice, scene);
        }
    }

    /// A Service was written.
    pub(super) fn service_written(&mut self, scene: &mut Scene<'_>) {
        if self.up && self.feed.is_some() {
            let lag = self.chance.waiting(self.profile.lag.0, self.profile.lag.1);
            self.plan(scene.now + lag, ProxyEvent::ReceiveService, scene);
        }
    }

    /// What the kernel does.
    pub(super) fn rules(&self, family: Family) -> Rules {
        self.rules[place(family)]
    }

    /// What it has broken, by now.
    pub(super) fn broken(&self, api: &Api, now: Monotonic) -> Broken {
        let mut broken = self.broken;
        if self.up {
            let known = api.written_by(now - BOUNDS.watch_lag);
            let all = |feed: &Feed| api.versions(known).iter().zip(feed.have).all(|(known, have)| have >= *known);
            broken.watch_lag |= !self.feed.as_ref().is_some_and(all);
            broken.watch_lag |= self.services < api.services_by(now - BOUNDS.watch_lag);
            for proxier in &self.proxiers {
                broken.sync_time |= proxier.sync.is_some_and(|sync| now.since(sync.since) > BOUNDS.sync_time);
                let due = proxier.due.filter(|_| proxier.sync.is_none()).max(proxier.last_end);
                broken.min_sync |= proxier.due.is_some() && due.is_some_and(|due| now.since(due) > BOUNDS.min_sync);
            }
        }
        broken
    }

    fn plan(&self, at: Monotonic, event: ProxyEvent, scene: &mut Scene<'_>) {
        scene.schedule.add(at, Event::Proxy(self.id, self.process, event));
    }

    fn receive_slice(&mut self, scene: &mut Scene<'_>) {
        let Some(feed) = &mut self.feed else { return };
        if std::mem::take(&mut self.relists) {
            feed.relist(scene.api, &mut self.chance);
            let id = self.id;
            scene.timeline.note(scene.now, || format!("{}: kube-proxy lists anew", name(id)));
        } else if let Some(taken) = feed.receive(scene.api) {
            self.taken(taken, scene);
        }
        self.plan_handling(scene);
    }

    fn handle(&mut self, scene: &mut Scene<'_>) {
        let Some(feed) = &mut self.feed else { return };
        if let Some(taken) = feed.handle(scene.api) {
            self.taken(taken, scene);
        }
        self.plan_handling(scene);
    }

    /// The handlers come soon to what waits.
    fn plan_handling(&mut self, scene: &mut Scene<'_>) {
        if self.feed.as_ref().is_some_and(Feed::waits) {
            let soon = self.chance.ms(0, 8);
            self.plan(scene.now + soon, ProxyEvent::Handle, scene);
        }
    }

    /// The handlers have another version of a slice.
    fn taken(&mut self, taken: Taken, scene: &mut Scene<'_>) {
        // Versions that it never had were late too.
        let missing = scene.api.written_after(taken.object, taken.before);
        self.broken.watch_lag |= missing.is_some_and(|at| scene.now.since(at) > BOUNDS.watch_lag);
        for version in [taken.before, taken.after] {
            match scene.api.content(version) {
                Some(Content::Slice(body)) => self.changed(body.family, scene),
                Some(Content::Marker(family, _)) => self.changed(*family, scene),
                Some(Content::Gone) | None => {}
            }
        }
    }

    fn receive_service(&mut self, scene: &mut Scene<'_>) {
        let Some(write) = scene.api.services.get(self.services as usize) else { return };
        self.services += 1;
        self.broken.watch_lag |= scene.now.since(write.at) > BOUNDS.watch_lag;
        for family in self.families {
            self.changed(*family, scene);
        }
    }

    fn unrelated(&mut self, scene: &mut Scene<'_>) {
        for family in self.families {
            self.due(*family, scene);
        }
        self.plan_unrelated(scene);
    }

    /// Something else changes now and then.
    pub(super) fn plan_unrelated(&mut self, scene: &mut Scene<'_>) {
        if let Some(mean) = self.profile.busy.filter(|_| self.up) {
            let next = scene.now + self.chance.waiting(mean, mean * 8);
            self.plan(next, ProxyEvent::Unrelated, scene);
        }
    }

    /// A time at which a first list can have been read.
    fn listed_at(&mut self, now: Monotonic) -> Monotonic {
        // A closed bound: at one instant two things have no order.
        let age = BOUNDS.watch_lag.saturating_sub(Duration::from_nanos(1));
        let oldest = match self.profile.first_list {
            FirstList::BeforeArrival => now - age,
            FirstList::BeforeStart => self.started - age,
        };
        if self.chance.percent(60) { oldest } else { oldest + self.chance.below(now.since(oldest)) }
    }
}
