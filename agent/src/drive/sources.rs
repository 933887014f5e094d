//! Who sends the SYNs that count while a drain runs: kept by the sensor, named by the list of nodes, told in status, verdict
//! and log. It decides nothing, but for C14: a SYN that came through a node contradicts what that node has confirmed.

mod told;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv6Addr,
    sync::Arc,
    time::Duration,
};

use crate::{
    cluster::{Place, Places},
    config::{Config, ReportSources},
    core::{
        class::Class,
        clock::Monotonic,
        cluster::{ClusterEvent, NodeName},
        drain::Core,
        event::Evidence,
        listener::{Family, Protocol},
        verdict::Sources,
    },
    drive::evidence::Reader,
    sensor::Kept,
};
use told::{Baseline, Telling};

/// How often they are read at most while SYNs come: each reading costs the kernel two calls for each source.
const BETWEEN_READINGS: Duration = Duration::from_millis(250);

/// How often it is logged which nodes still send.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// How many nodes one line names.
const MOST_NAMED: usize = 5;

/// The sources of the drain under way, and of the last one.
pub(super) struct Knockers {
    how: ReportSources,
    /// The node that the pod is on.
    own: NodeName,
    drain: Option<UnderWay>,
    /// Of the last drain that has ended.
    last: Option<Sources>,
    /// `mode: observe`: they are kept without a drain.
    observes: bool,
}

struct UnderWay {
    started: Monotonic,
    kept: Kept,
    /// When the nodes were last judged by it, and how many attempts there were then.
    judged_at: Option<Monotonic>,
    attempts: u64,
    /// What had come by the time at which the pod was withdrawn.
    before: Option<Baseline>,
    places: Arc<Places>,
    /// The node addresses that the sensor keeps whole.
    whole: BTreeSet<Ipv6Addr>,
    /// C14: the newest SYN through each node that the core knows of.
    through: BTreeMap<(NodeName, Family), Monotonic>,
    /// How many had come from each node when that was last logged, and when that was.
    logged: BTreeMap<(NodeName, Family), u64>,
    logged_at: Option<Monotonic>,
}

impl Knockers {
    /// Nothing is kept yet.
    pub(super) fn new(config: &Config) -> Self {
        let own = NodeName(config.pod.node_name.clone());
        Self { how: config.report.sources, own, drain: None, last: None, observes: false }
    }

    /// Follows the core: begins with a drain, ends with it.
    pub(super) fn follow(&mut self, core: &Core, reader: &mut Reader, now: Monotonic) {
        if self.how == ReportSources::Off {
            return;
        }
        let started = core.drain_span().map(|span| span.started);
        if self.drain.as_ref().is_some_and(|drain| Some(drain.started) != started) {
            self.end(reader, now);
        }
        if let Some(started) = started
            && self.drain.is_none()
        {
            self.begin(reader, started);
        }
        let unrouted = core.is_unrouted();
        if let Some(drain) = &mut self.drain
            && drain.before.is_some() != unrouted
        {
            drain.read(reader);
            drain.before = unrouted.then(|| Baseline::of(&drain.kept));
            drain.logged.clear();
        }
    }

    fn begin(&mut self, reader: &mut Reader, started: Monotonic) {
        self.last = None;
        match reader.sensor_mut().keep_sources(true) {
            Ok(false) => {}
            Ok(true) => {
                self.drain = Some(UnderWay {
                    started,
                    kept: Kept::default(),
                    judged_at: None,
                    attempts: 0,
                    before: None,
                    places: Arc::default(),
                    whole: BTreeSet::new(),
                    through: BTreeMap::new(),
                    logged: BTreeMap::new(),
                    logged_at: None,
                });
            }
            Err(why) => tracing::warn!(%why, "who sends SYNs is not kept in this drain"),
        }
    }

    fn end(&mut self, reader: &mut Reader, now: Monotonic) {
        let Some(mut drain) = self.drain.take() else { return };
        drain.read(reader);
        self.last = Some(self.telling(&drain).told(now));
        if let Err(why) = reader.sensor_mut().keep_sources(false) {
            tracing::warn!(%why, "who sends SYNs is kept on after the drain");
        }
    }

    /// After a reading: reads the sources too where SYNs have come since, and returns what C14 asks the core to be told.
    pub(super) fn after(
        &mut self,
        evidence: &Evidence,
        places: Arc<Places>,
        reader: &mut Reader,
        now: Monotonic,
    ) -> Vec<ClusterEvent> {
        let Some(drain) = &mut self.drain else { return Vec::new() };
        if !Arc::ptr_eq(&drain.places, &places) {
            drain.places = places;
            drain.name_nodes(reader);
        }
        let attempts = counted(evidence);
        let due = drain.judged_at.is_none_or(|judged_at| now.since(judged_at) >= BETWEEN_READINGS);
        if attempts == drain.attempts || !due {
            return Vec::new();
        }
        (drain.attempts, drain.judged_at) = (attempts, Some(now));
        drain.read(reader);
        let through = drain.through_nodes(&self.own);
        self.log(now);
        through
    }

    /// Which nodes still send though the pod is withdrawn.
    fn log(&mut self, now: Monotonic) {
        let Some(drain) = &self.drain else { return };
        let silent = drain.logged_at.is_some_and(|logged_at| now.since(logged_at) < BETWEEN_LINES);
        if drain.before.is_none() || silent {
            return;
        }
        let nodes = self.telling(drain).nodes_since_withdrawal();
        let Some(drain) = &mut self.drain else { return };
        let news: Vec<_> = nodes.into_iter().filter(|(node, count)| drain.logged.get(node) != Some(count)).collect();
        let told: Vec<_> = news.iter().take(MOST_NAMED).map(still_sends).collect();
        let more = news.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!("; and {more} more, which the status has") } else { String::new() };
        // Once aloud: a drain is to have few lines, and status, verdict and report have them all.
        match (told.is_empty(), drain.logged_at) {
            (true, _) => {}
            (false, None) => tracing::info!("{}{more}", told.join("; ")),
            (false, Some(_)) => tracing::debug!("{}{more}", told.join("; ")),
        }
        if !news.is_empty() {
            drain.logged_at = Some(now);
            drain.logged.extend(news);
        }
    }

    /// The sources of the drain under way, read anew; nothing without one.
    pub(super) fn now(&mut self, reader: &Reader, now: Monotonic) -> Option<Sources> {
        self.drain.as_mut()?.read(reader);
        Some(self.telling(self.drain.as_ref()?).told(now))
    }

    /// `mode: observe`: begins to keep sources without a drain, where they are wanted and the sensor knows them.
    pub(super) fn observe(&mut self, reader: &mut Reader) {
        if self.how == ReportSources::Off {
            return;
        }
        match reader.sensor_mut().keep_sources(true) {
            Ok(kept) => self.observes = kept,
            Err(why) => tracing::warn!(%why, "who sends SYNs is not kept"),
        }
    }

    /// Those since [`observe`](Self::observe), read anew. No node is known by name: the cluster is not watched.
    pub(super) fn observed(&self, reader: &Reader, now: Monotonic) -> Option<Sources> {
        if !self.observes {
            return None;
        }
        let kept = reader.sensor().sources();
        let kept = kept.inspect_err(|why| tracing::warn!(%why, "who sends SYNs cannot be read")).ok()?;
        let full = self.how == ReportSources::Full;
        Some(Telling { kept: &kept, places: &Places::default(), before: None, full }.told(now))
    }

    /// Those of the last drain that has ended.
    pub(super) fn last(&self) -> Option<&Sources> {
        self.last.as_ref()
    }

    fn telling<'a>(&self, drain: &'a UnderWay) -> Telling<'a> {
        let full = self.how == ReportSources::Full;
        Telling { kept: &drain.kept, places: &drain.places, before: drain.before.as_ref(), full }
    }
}

impl UnderWay {
    fn read(&mut self, reader: &Reader) {
        match reader.sensor().sources() {
            Ok(kept) => self.kept = kept,
            Err(why) => tracing::warn!(%why, "who sends SYNs cannot be read"),
        }
    }

    /// Nodes share networks, so that the sensor is to know their addresses.
    fn name_nodes(&mut self, reader: &mut Reader) {
        let whole = self.places.nodes_v6();
        if whole != self.whole {
            if let Err(why) = reader.sensor_mut().keep_whole(&whole) {
                tracing::warn!(%why, "which node sends over IPv6 is not told");
            }
            self.whole = whole;
        }
    }

    /// C14: the SYNs that came by another node's own address since they were last told, once the pod is withdrawn. What was sent again says nothing: the
    /// node's connection tracking goes on sending it here. Of the own node nothing is said, as kubelet's probes have its
    /// addresses; nor of datagrams, which have no beginning that connection tracking knows.
    fn through_nodes(&mut self, own: &NodeName) -> Vec<ClusterEvent> {
        let mut news = Vec::new();
        if self.before.is_none() {
            return news;
        }
        for source in &self.kept.sources {
            let Some(Place::Node(node)) = source.whole.then(|| self.places.of_address(source.address)).flatten() else {
                continue;
            };
            let Some(at) = source.opened.filter(|_| source.port.protocol() == Protocol::Tcp && node != own) else {
                continue;
            };
            let family = source.family;
            let told = self.through.entry((node.clone(), family)).or_default();
            if at > *told {
                *told = at;
                news.push(ClusterEvent::AttemptThrough { node: node.clone(), family, at });
            }
        }
        news
    }
}

fn still_sends(((node, family), count): &((NodeName, Family), u64)) -> String {
    format!("node {node} still sends over {family}: {count} since the pod was withdrawn")
}

/// How many attempts there were, of classes of which sources are kept.
fn counted(evidence: &Evidence) -> u64 {
    let ports = evidence.attempts.values();
    let families = ports.flat_map(|attempts| Family::ALL.map(|family| *attempts.families.get(family)));
    let classes = [Class::New, Class::Retransmit, Class::Refused, Class::Join];
    families.flat_map(|attempts| classes.map(|class| attempts.get(class).count)).sum()
}
