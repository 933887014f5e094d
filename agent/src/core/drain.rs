//! The state machine: [`handle`](Core::handle) an event, do what [`poll`](Core::poll) says, sleep until
//! [`poll_timeout`](Core::poll_timeout).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{
    clock::Monotonic,
    confirm::StatusGiven,
    counters::Counters,
    ending::{Holds, Look, Next},
    event::{Action, Depth, Event, Evidence},
    follow::Asked,
    handshake::Handshakes,
    journal::{Journal, Transition},
    late::AfterEnd,
    quiet::Since,
    reading,
    recording::Kept,
    report::{self, Ended},
    retry::Retry,
    settings::Settings,
    stop::Stopping,
    termination::Sign,
    under_way::{Begun, Drain},
    verdict::{Reason, Strategy, Verdict},
    watched::Watched,
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
#[derive(Clone, Debug)]
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
    pub(super) status_given: StatusGiven,
    /// S5: when the agent's own preStop hook was last called.
    own_hook: Option<Monotonic>,
    pub(super) asked: Asked,
    pub(super) handshakes: Handshakes,
    pub(super) witness: Witness,
    pub(super) stopping: Option<Stopping>,
    pub(super) reading: Option<reading::Asked>,
    /// When the evidence is next due while nothing happens.
    pub(super) look_at: Monotonic,
    pub(super) actions: VecDeque<Action>,
    pub(super) journal: Journal,
    pub(super) recording: Kept,
    pub(super) verdict: Option<Arc<Verdict>>,
    /// S7: what came after the last drain's end; `None` also if nothing had been read by then.
    pub(super) after_end: Option<AfterEnd>,
    pub(super) drains_ended: u64,
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
            own_hook: None,
            asked: Asked::default(),
            handshakes: Handshakes::default(),
            witness: Witness::default(),
            stopping: None,
            reading: None,
            look_at: now,
            actions: VecDeque::new(),
            journal: Journal::default(),
            recording: Kept::default(),
            verdict: None,
            after_end: None,
            drains_ended: 0,
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event, now: Monotonic) {
        self.record(&event, now);
        match event {
            Event::Clock => {}
            Event::HookCalled { caller, wall_time } => self.hook_called(Begun { caller, wall_time }, now),
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
                    self.termination_shown(Sign::Signal, now);
                }
            }
            Event::OwnHookCalled => {
                self.own_hook = Some(now);
                self.termination_shown(Sign::OwnHook, now);
            }
            Event::MaxWaitKnown(max_wait) => self.max_wait_known(max_wait),
            Event::Cluster(observation, event) => self.cluster_says(observation, &event, now),
            Event::PodRead(id, outcome) => self.pod_read(id, &outcome, now),
            Event::Told(phase, outcome) => {
                let what = match outcome {
                    Ok(()) => Transition::Told(phase),
                    Err(why) => Transition::NotTold(phase, why),
                };
                self.journal.record(now, what);
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

    fn hook_called(&mut self, begun: Begun, now: Monotonic) {
        let caller = begun.caller;
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
        let observation = self.asked.observation();
        let mut drain = Drain::new(&self.settings, begun, self.status_given, observation, now);
        drain.unwatched_before = self.evidence.as_ref().map_or(Duration::ZERO, |evidence| evidence.blind);
        self.bound = Some(drain.bound);
        if self.stopping.is_some() {
            drain.termination.shown(Sign::Signal);
        }
        if let (Some(called), Some(guard)) = (self.own_hook, self.settings.restart_guard)
            && now.since(called) <= guard
        {
            drain.termination.shown(Sign::OwnHook);
        }
        if drain.withdrawal.is_some() {
            self.actions.push_back(Action::ObserveCluster(observation));
        }
        self.drain = Some(drain);
        // The handshakes too: the witness compares from here on.
        self.read_anew(Depth::Handshakes, now);
    }

    /// Decides, as far as the evidence and the time allow.
    fn advance(&mut self, now: Monotonic) {
        self.expire(now);
        let next = self.look(now);
        if let Some(reason) = self.reason_to_end(next, now) {
            self.end(reason, now);
        } else if self.drain.is_none() {
            self.advance_at_rest(now);
        } else {
            let asked_due = self.ask(now);
            if self.reading.is_none() {
                self.advance_drain(next, asked_due, now);
            }
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

    /// Reads when there may be something to read. `asked_due` is when something else is next to be asked or told.
    fn advance_drain(&mut self, next: Option<Next>, asked_due: Option<Monotonic>, now: Monotonic) {
        let (Some(next), Some(drain), Some(evidence)) = (next, &self.drain, &self.evidence) else {
            return;
        };
        let (taken_at, deep) = (evidence.taken_at, self.settings.depth());
        let (look_at, depth) = match next {
            // An end that is due has been made; what is left is one that has to wait.
            Next::End | Next::Await => (drain.bound, deep),
            Next::ReadConnections => return self.read(deep, now),
            Next::Wait { until, unread: true } if taken_at < until - LEAD => (until - LEAD, deep),
            Next::Wait { until, .. } => (until, Depth::Listeners),
            Next::Look(latest) => {
                let paced = self.received + pace(taken_at.since(drain.started));
                (latest.map_or(paced, |latest| latest.min(paced)), deep)
            }
        };
        let last_look = drain.bound - LAST_LOOK;
        let look_at = if taken_at < last_look { look_at.min(last_look) } else { look_at };
        if now >= look_at {
            return self.read(if now >= last_look { deep } else { depth }, now);
        }
        self.look_at = asked_due.map_or(look_at, |due| due.min(look_at));
    }

    /// Asks every condition what the evidence means to it; `None` without a drain or evidence of its own.
    fn look(&mut self, now: Monotonic) -> Option<Next> {
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
        let known = drain.note(holds, evidence.taken_at, now);
        Some(holds.next(&known))
    }

    /// Where quiet counts from at the earliest, by what `evidence` shows.
    pub(super) fn since(&self, evidence: &Evidence) -> Since {
        Since {
            drain_started: self.drain.as_ref().map(|drain| drain.started),
            untrusted: !self.trusts_sensor(evidence),
            namespace_active: self.counters.active(),
        }
    }

    fn end(&mut self, reason: Reason, now: Monotonic) {
        let Some(drain) = &mut self.drain else {
            return;
        };
        let take_back = drain.phases.take_back().filter(|_| reason == Reason::NotTerminating);
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
            no_routing: self.settings.no_routing,
        }));
        // Before anything else that is to be done: a reading takes a while.
        for caller in drain.callers.iter().rev() {
            self.actions.push_front(Action::Answer(*caller, Arc::clone(&verdict)));
        }
        self.actions.extend(take_back.map(Action::Tell));
        if drain.withdrawal.is_some() {
            self.actions.push_back(Action::ForgetCluster);
        }
        self.after_end = seen.map(|evidence| AfterEnd::new(now, evidence));
        self.drain = None;
        self.journal.record(now, Transition::DrainEnded(reason));
        self.drains_ended = self.drains_ended.saturating_add(1);
        self.verdict = Some(verdict);
        self.look_at = now;
        self.advance_at_rest(now);
    }
}

/// How long to wait before looking again at what may change at any moment: an eighth of the time it has taken so far,
/// so that looking costs little and delays the end by little.
pub(super) fn pace(so_far: Duration) -> Duration {
    (so_far / 8).clamp(PACE.0, PACE.1)
}
