//! One node's kube-proxy, and the rules that it leaves in the kernel.
//!
//! Order of things in the source (Kubernetes 1.29 to 1.37): the handlers take changes one by one; a sync takes one
//! snapshot of what they have, writes it, stamps (`Updated()`, which deletes the pending time whatever it belongs to),
//! and sets the health-check node ports. A process stamps as it starts, before it has listed anything, and syncs first
//! when its first list is with the handlers.

use crate::{
    api::{Log, Object},
    feed::Feed,
    setting::{FirstList, HEALTH_TIMEOUT, Queue, Setting, Writing},
};

/// What the kernel does, whichever process wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    pub(crate) route: bool,
    pub(crate) marker: u8,
}

/// kube-proxy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KubeProxy {
    /// Which process: 1 for the first.
    pub(crate) process: u8,
    pub(crate) up: bool,
    /// When it started; always 0 where nobody asks.
    started: u8,
    /// What its watch brought; `None` until its first list.
    feed: Option<Feed>,
    /// Since when a sync is due.
    due: Option<u8>,
    sync: Option<Sync>,
    /// How many stamps there were.
    pub(crate) stamps: u8,
    /// When the last was made.
    pub(crate) stamped: u8,
    /// Since when a change is pending, as its health server believes.
    pending: Option<u8>,
    /// What the fence Service's health-check node port answers.
    pub(crate) port: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sync {
    /// What the snapshot says of the pod, and the marker in it.
    routes: bool,
    marker: u8,
    since: u8,
    wrote_pod: bool,
    wrote_marker: bool,
}

/// What it may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The watch delivers the next write (`DeltaFIFO` alone: in order, delivery is the handlers' turn).
    Receive,
    /// The handlers take the next write.
    Handle,
    /// The handlers take an object of a list.
    HandleListed(Object),
    /// The watch is lost, and a list of this version replaces it.
    Relist(usize),
    /// A change of another Service.
    Unrelated,
    /// A sync starts.
    StartSync,
    /// It writes the pod's Service.
    WritePod,
    /// It writes the fence's Service.
    WriteMarker,
    /// It has written everything, and stamps.
    EndSync,
    /// It fails: nothing is written, no stamp, and it is tried again.
    FailSync,
    /// The process dies. The rules stay.
    Die {
        /// What the sync that was under way had still to write, it has written.
        written: bool,
    },
    /// It starts again, and stamps.
    Start,
    /// Its first list, of this version, is with the handlers.
    FirstList(usize),
}

impl KubeProxy {
    pub(crate) fn new(queue: Queue) -> Self {
        let feed = Feed::listed(0, &Log::default(), queue);
        Self {
            process: 1,
            up: true,
            started: 0,
            feed: Some(feed),
            due: None,
            sync: None,
            stamps: 0,
            stamped: 0,
            pending: None,
            port: 0,
        }
    }

    /// Whether its health server says `healthy: true`.
    pub(crate) fn is_healthy(&self, now: u8) -> bool {
        self.pending.is_none_or(|since| since + HEALTH_TIMEOUT > now)
    }

    /// Nobody looks at what it tells any more: states that differ in nothing else are one.
    pub(crate) fn is_no_longer_asked(&mut self) {
        (self.process, self.stamps, self.stamped, self.pending, self.port) = (0, 0, 0, None, 0);
    }

    /// Everything that it may do, whether or not the world's limits let it.
    pub(crate) fn steps(&self, log: &Log, setting: &Setting, now: u8, steps: &mut Vec<Step>) {
        if !self.up {
            steps.push(Step::Start);
            return;
        }
        if let Some(feed) = &self.feed {
            steps.extend(feed.can_receive(log).then_some(Step::Receive));
            steps.extend(feed.can_handle(log).then_some(Step::Handle));
            steps.extend(feed.listed_next().map(Step::HandleListed));
            steps.extend((feed.received() + 1..=log.len()).map(Step::Relist));
            steps.extend(self.due.is_none().then_some(Step::Unrelated));
            steps.extend((self.sync.is_none() && self.due.is_some()).then_some(Step::StartSync));
        } else {
            let oldest = match setting.assumed.first_list {
                FirstList::BeforeArrival(lag) => log.older_than(lag, now),
                FirstList::BeforeStart(lag) => log.older_than(lag, self.started),
                FirstList::Any => 0,
            };
            steps.extend((oldest..=log.len()).map(Step::FirstList));
        }
        if let Some(sync) = &self.sync {
            if setting.writing == Writing::ByService {
                steps.extend((!sync.wrote_pod).then_some(Step::WritePod));
                steps.extend((!sync.wrote_marker).then_some(Step::WriteMarker));
            }
            if setting.writing == Writing::AtOnce || (sync.wrote_pod && sync.wrote_marker) {
                steps.push(Step::EndSync);
            }
            steps.push(Step::FailSync);
            steps.push(Step::Die { written: true });
        }
        steps.push(Step::Die { written: false });
    }

    /// Does it.
    pub(crate) fn step(&mut self, step: Step, log: &Log, rules: &mut Rules, setting: &Setting, now: u8) {
        match step {
            Step::Receive => self.feed.iter_mut().for_each(|feed| feed.receive(log)),
            Step::Handle => {
                let changed = self.feed.as_mut().is_some_and(|feed| feed.handle(log));
                self.handled(changed, setting, now);
            }
            Step::HandleListed(object) => {
                let changed = self.feed.as_mut().is_some_and(|feed| feed.handle_listed(object));
                self.handled(changed, setting, now);
            }
            Step::Relist(version) => self.feed.iter_mut().for_each(|feed| feed.relist(version, log)),
            Step::Unrelated => self.due = Some(setting.due_at(now)),
            Step::StartSync => self.start_sync(log, setting, now),
            Step::WritePod => self.write(rules, true, false),
            Step::WriteMarker => self.write(rules, false, true),
            Step::EndSync => self.end_sync(rules, setting, now),
            Step::FailSync => {
                self.sync = None;
                self.due = Some(setting.due_at(now));
            }
            Step::Die { written } => {
                if written {
                    self.write(rules, true, true);
                }
                let stamps = self.stamps;
                *self = Self {
                    up: false,
                    feed: None,
                    stamps,
                    stamped: self.stamped,
                    process: self.process,
                    ..Self::new(setting.queue)
                };
            }
            Step::Start => {
                self.up = true;
                self.process += 1;
                self.started = setting.started_at(now);
                self.stamp(setting, now);
            }
            Step::FirstList(version) => {
                self.feed = Some(Feed::listed(version, log, setting.queue));
                self.due = Some(setting.due_at(now));
            }
        }
    }

    /// Whether everything that is assumed lets the clock go on to `next`.
    pub(crate) fn lets_pass(&self, log: &Log, setting: &Setting, next: u8) -> bool {
        if !self.up {
            return true;
        }
        let assumed = &setting.assumed;
        let within = |since: u8, bound: Option<u8>| bound.is_none_or(|bound| since + bound >= next);
        let handlers_have_all = match (&self.feed, assumed.watch_lag) {
            (Some(feed), Some(lag)) => feed.has_all(log.older_than(lag, next), log),
            _ => true,
        };
        handlers_have_all
            && (self.feed.is_some() || within(self.started, assumed.first_list_comes))
            && self.sync.is_none_or(|sync| within(sync.since, assumed.sync_time))
            && (self.sync.is_some() || self.due.is_none_or(|due| within(due, assumed.min_sync)))
    }

    /// The handlers took something: if it changed anything, a sync is due, and the health server is told.
    fn handled(&mut self, changed: bool, setting: &Setting, now: u8) {
        if changed {
            self.due = self.due.or(Some(setting.due_at(now)));
            if setting.asks_health() {
                self.pending = self.pending.or(Some(now));
            }
        }
    }

    fn start_sync(&mut self, log: &Log, setting: &Setting, now: u8) {
        self.due = None;
        let since = if setting.assumed.sync_time.is_some() { now } else { 0 };
        let Some(feed) = &self.feed else { return };
        let snapshot = feed.view(log, &setting.service);
        let routes = setting.service.routes(&snapshot);
        self.sync = Some(Sync { routes, marker: snapshot.marker, since, wrote_pod: false, wrote_marker: false });
    }

    fn write(&mut self, rules: &mut Rules, pod: bool, marker: bool) {
        let Some(sync) = &mut self.sync else { return };
        if pod {
            rules.route = sync.routes;
            sync.wrote_pod = true;
        }
        if marker {
            rules.marker = sync.marker;
            sync.wrote_marker = true;
        }
    }

    fn end_sync(&mut self, rules: &mut Rules, setting: &Setting, now: u8) {
        self.write(rules, true, true);
        if let Some(sync) = self.sync.take() {
            self.port = sync.marker;
            // It waits from here, as `minSync` counts from the end of the last sync.
            self.due = self.due.map(|_| setting.due_at(now));
            self.stamp(setting, now);
        }
    }

    fn stamp(&mut self, setting: &Setting, now: u8) {
        self.stamps += 1;
        self.pending = None;
        if setting.asks_stamps() {
            self.stamped = now;
        }
    }
}
