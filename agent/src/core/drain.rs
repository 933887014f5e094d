//! The state machine: [`handle`](Core::handle) an event, do what [`poll`](Core::poll) says, sleep until
//! [`poll_timeout`](Core::poll_timeout).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    clock::Monotonic,
    confirm::StatusGiven,
    counters::Counters,
    counts::CountsBefore,
    ending::{Holds, Look, Next},
    event::{Action, CallerId, Depth, Event, Evidence, SensorState},
    handshake::Handshakes,
    journal::{Journal, Transition},
    quiet::Since,
    reading::Asked,
    report::{self, Ended},
    retry::Retry,
    settings::Settings,
    stop::Stopping,
    verdict::{Condition, Reason, Strategy, Verdict},
    watched::Watched,
    withdrawal::{Ask, Withdrawal},
    witness::Witness,
};

/// How often the evidence is read while no drain runs, at most and at least.
const AT_REST: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));

/// The shortest and the longest time between two looks at what may change at any moment.
const PACE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// How long before the bound everything is read once more, so that the verdict can tell what holds then.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// How long before all else is met the handshakes are read, so that the last look is a cheap one: it stands if no SYN
/// has come since then.
const LEAD: Duration = Duration::from_millis(50);

/// The decision.
#[derive(Debug)]
pub struct Core {
    pub(super) settings: Settings,
    pub(super) watched: Watched,
    pub(super) evidence: Option<Evidence>,
    /// When the evidence came in: a reading takes a while.
    pub(super) received: Monotonic,
    pub(super) drain: Option<Drain>,
    /// The newest drain's bound.
    pub(super) bound: Option<Monotonic>,
    pub(super) counters: Counters,
    pub(super) retry: Retry,
    /// C12: which nodes' health servers have given a status to this agent.
    status_given: StatusGiven,
    pub(super) handshakes: Handshakes,
    pub(super) witness: Witness,
    pub(super) stopping: Option<Stopping>,
    pub(super) reading: Option<Asked>,
    /// When the evidence is next due while nothing happens.
    pub(super) look_at: Monotonic,
    pub(super) actions: VecDeque<Action>,
    pub(super) journal: Journal,
    pub(super) verdict: Option<Arc<Verdict>>,
    pub(super) drains_ended: u64,
}

/// A drain under way.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) started: Monotonic,
    pub(super) bound: Monotonic,
    pub(super) wall_time: String,
    pub(super) callers: BTreeSet<CallerId>,
    /// Until when each condition is known to have held the end.
    pub(super) held: BTreeMap<Condition, Monotonic>,
    /// What each condition said when it was last known.
    holds: Option<Holds>,
    /// E5, E6: what is known of the cluster, where it is watched.
    pub(super) withdrawal: Option<Withdrawal>,
    /// What had been counted when it began; `None` until the evidence has been read once.
    pub(super) counts_before: Option<CountsBefore>,
    /// S3: the witness has shown the sensor to be blind in this drain, by how many handshakes.
    pub(super) blind: Option<u64>,
    /// The sensor was not proven at some time in this drain, and why.
    pub(super) sensor_failed: Option<String>,
}

impl Core {
    /// A core that has seen nothing yet. It asks for a first reading at once.
    pub fn new(settings: Settings, now: Monotonic) -> Self {
        Self {
            watched: Watched::new(&settings.watch),
            settings,
            evidence: None,
            received: now,
            drain: None,
            bound: None,
            counters: Counters::default(),
            retry: Retry::default(),
            status_given: StatusGiven::default(),
            handshakes: Handshakes::default(),
            witness: Witness::default(),
            stopping: None,
            reading: None,
            look_at: now,
            actions: VecDeque::new(),
            journal: Journal::default(),
            verdict: None,
            drains_ended: 0,
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event, now: Monotonic) {
        match event {
            Event::Clock => {}
            Event::HookCalled { caller, wall_time } => self.hook_called(caller, wall_time, now),
            Event::HookLeft { caller } => {
                if self.drain.as_mut().is_some_and(|drain| drain.callers.remove(&caller)) {
                    self.journal.record(now, Transition::CallerLeft(caller));
                }
            }
            Event::Terminate => {
                if self.stopping.is_none() {
                    self.stopping = Some(Stopping::new(now));
                    self.journal.record(now, Transition::Terminating);
                    self.read_anew(Depth::Listeners, now);
                }
            }
            Event::Cluster(event) => {
                if let Some(withdrawal) = self.drain.as_mut().and_then(|drain| drain.withdrawal.as_mut()) {
                    withdrawal.handle(&event, now);
                }
            }
            Event::Evidence(evidence) => self.take_evidence(*evidence, now),
        }
        self.advance(now);
    }

    /// What is to be done now, one after the other until `None`.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Clock`] is due. Before that, nothing changes unless another event comes. `None` while an answer to
    /// an [`Action`] is awaited and no bound runs, and after [`Action::Exit`].
    pub fn poll_timeout(&self) -> Option<Monotonic> {
        if self.stopping.as_ref().is_some_and(Stopping::has_left) {
            return None;
        }
        let bound = self.drain.as_ref().map(|drain| drain.bound);
        let leave = self.stopping.as_ref().map(|stopping| stopping.limit(self.bound, &self.settings));
        let look = self.reading.is_none().then_some(self.look_at);
        [bound, leave, look].into_iter().flatten().min()
    }

    fn hook_called(&mut self, caller: CallerId, wall_time: String, now: Monotonic) {
        // A drain whose bound has come is over, even if nobody has said so yet: whoever calls now is not to be let go.
        if self.drain.as_ref().is_some_and(|drain| now >= drain.bound) {
            self.end(Reason::Bound, now);
        }
        if let Some(drain) = &mut self.drain {
            drain.callers.insert(caller);
            self.journal.record(now, Transition::CallerJoined(caller));
            return;
        }
        self.journal.record(now, Transition::DrainStarted(caller));
        self.witness.start_anew();
        let bound = now + self.settings.max_wait;
        self.bound = Some(bound);
        self.drain = Some(Drain {
            started: now,
            bound,
            wall_time,
            callers: BTreeSet::from([caller]),
            held: BTreeMap::new(),
            holds: None,
            withdrawal: self.settings.routing.as_ref().map(|routing| Withdrawal::new(routing, self.status_given, now)),
            counts_before: None,
            blind: None,
            sensor_failed: None,
        });
        if self.settings.routing.is_some() {
            self.actions.push_back(Action::ObserveCluster);
        }
        // The handshakes too: the witness compares from here on.
        self.read_anew(Depth::Handshakes, now);
    }

    /// Decides, as far as the evidence and the time allow.
    fn advance(&mut self, now: Monotonic) {
        match &self.drain {
            Some(drain) if now >= drain.bound => {
                self.look();
                self.end(Reason::Bound, now);
            }
            Some(_) if self.reading.is_some() => {}
            Some(_) => self.advance_drain(now),
            None => self.advance_at_rest(now),
        }
        self.advance_stop(now);
    }

    fn advance_at_rest(&mut self, now: Monotonic) {
        if let Some(evidence) = &self.evidence {
            // Often enough that what was dropped before a drain is not older than what E2a asks about, and that a new
            // listener is soon counted.
            self.look_at = evidence.taken_at + self.settings.retry_wait.clamp(AT_REST.0, AT_REST.1);
        }
        if now >= self.look_at {
            self.read(Depth::Listeners, now);
        }
    }

    fn advance_drain(&mut self, now: Monotonic) {
        let cluster_due = self.follow_cluster(now);
        let (Some(next), Some(drain), Some(evidence)) = (self.look(), &self.drain, &self.evidence) else {
            return;
        };
        let (taken_at, deep) = (evidence.taken_at, self.settings.depth());
        let (look_at, depth) = match next {
            Next::End => {
                let reason = self.reason();
                return self.end(reason, now);
            }
            Next::ReadConnections => return self.read(deep, now),
            Next::Wait { until, unread: true } if taken_at < until - LEAD => (until - LEAD, deep),
            Next::Wait { until, .. } => (until, Depth::Listeners),
            Next::Await => (drain.bound, deep),
            Next::Look(latest) => {
                let paced = self.received + pace(taken_at.since(drain.started));
                (latest.map_or(paced, |latest| latest.min(paced)), deep)
            }
        };
        let look_at = cluster_due.map_or(look_at, |due| due.min(look_at));
        let last_look = drain.bound - LAST_LOOK;
        self.look_at = if taken_at < last_look { look_at.min(last_look) } else { look_at };
        if now >= self.look_at {
            self.read(if now >= last_look { deep } else { depth }, now);
        }
    }

    /// Asks the cluster what is to be asked now. Returns when it is next due, if nothing comes before.
    fn follow_cluster(&mut self, now: Monotonic) -> Option<Monotonic> {
        let withdrawal = self.drain.as_mut()?.withdrawal.as_mut()?;
        withdrawal.look(now);
        while let Some(ask) = withdrawal.ask(now) {
            self.actions.push_back(match ask {
                Ask::Read(id) => Action::ReadConsistently(id),
                Ask::Fence(request) => Action::AskFence(request),
            });
        }
        self.status_given = withdrawal.status_given();
        withdrawal.due().filter(|due| *due > now)
    }

    /// Asks every condition what the evidence means to it; `None` without a drain or evidence of its own.
    fn look(&mut self) -> Option<Next> {
        let evidence = self.evidence.as_ref()?;
        let since = self.since(evidence);
        let drain = self.drain.as_mut().filter(|drain| drain.counts_before.is_some())?;
        let holds = Holds::of(&Look {
            settings: &self.settings,
            evidence,
            watched: &self.watched,
            retry: self.retry,
            handshakes: &self.handshakes,
            started: drain.started,
            since,
            withdrawal: drain.withdrawal.as_ref(),
        });
        drain.note(holds, evidence.taken_at);
        Some(holds.next())
    }

    /// Where quiet counts from at the earliest, by what `evidence` shows.
    pub(super) fn since(&self, evidence: &Evidence) -> Since {
        Since {
            drain_started: self.drain.as_ref().map(|drain| drain.started),
            untrusted: !self.trusts_sensor(evidence),
            namespace_active: self.counters.active(),
        }
    }

    /// What an end by the conditions may be called.
    fn reason(&self) -> Reason {
        let (Some(drain), Some(evidence)) = (&self.drain, &self.evidence) else {
            return Reason::Bound;
        };
        let told = drain.withdrawal.as_ref().map(Withdrawal::told);
        let seen_all = report::unseen(drain, evidence, &self.watched).is_empty();
        match told {
            _ if !seen_all => Reason::Unverified,
            None => Reason::Quiet,
            Some(told) => told.reason(),
        }
    }

    fn end(&mut self, reason: Reason, now: Monotonic) {
        let Some(drain) = &self.drain else {
            return;
        };
        let seen = self.evidence.as_ref().filter(|_| drain.counts_before.is_some());
        let verdict = Arc::new(report::verdict(&Ended {
            reason,
            at: now,
            drain,
            seen: seen.map(|evidence| (evidence, self.since(evidence))),
            watched: &self.watched,
            strategy: self.evidence.as_ref().map_or(Strategy::Counters, |evidence| evidence.sensor.strategy()),
            quiet_period: self.settings.quiet_period,
        }));
        // Before anything else that is to be done: a reading takes a while.
        for caller in drain.callers.iter().rev() {
            self.actions.push_front(Action::Answer(*caller, Arc::clone(&verdict)));
        }
        self.drain = None;
        self.journal.record(now, Transition::DrainEnded(reason));
        self.drains_ended = self.drains_ended.saturating_add(1);
        self.verdict = Some(verdict);
        self.look_at = now;
        self.advance_at_rest(now);
    }
}

impl Drain {
    /// Takes over what the conditions say.
    fn note(&mut self, holds: Holds, now: Monotonic) {
        for (condition, until) in holds.held(now) {
            let known = self.held.entry(condition).or_insert(until);
            *known = until.max(*known);
        }
        self.holds = Some(holds.or(self.holds, now));
    }

    /// S3: takes over whether the sensor saw everything, as far as a reading in this drain tells.
    pub(super) fn note_sensor(&mut self, surplus: Option<u64>, evidence: &Evidence) {
        if let Some(surplus) = surplus {
            self.blind = Some(self.blind.unwrap_or(0).saturating_add(surplus));
        }
        let failed = match &evidence.sensor {
            SensorState::Unproven { why, .. } => Some(why.clone()),
            SensorState::Proven { since, .. } if *since > self.started => {
                Some("it was found in place only after the hook's call".to_owned())
            }
            SensorState::Proven { .. } => None,
        };
        self.sensor_failed = self.sensor_failed.take().or(failed);
        self.counts_before.get_or_insert_with(|| CountsBefore::at(self.started, evidence));
    }

    /// What is known to hold the end.
    pub(super) fn holding(&self) -> Vec<Condition> {
        self.holds.map_or_else(Vec::new, |holds| holds.holding().collect())
    }
}

/// How long to wait before looking again at what may change at any moment: an eighth of the time it has taken so far,
/// so that looking costs little and delays the end by little.
pub(super) fn pace(so_far: Duration) -> Duration {
    (so_far / 8).clamp(PACE.0, PACE.1)
}
