//! The state machine: [`handle`](Core::handle) an event, do what [`poll`](Core::poll) says, sleep until
//! [`poll_timeout`](Core::poll_timeout).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    clock::Monotonic,
    ending::{Holds, Look, Next},
    event::{Action, CallerId, Depth, Event, Evidence, SensorState},
    handshake::Handshakes,
    journal::{Journal, Transition},
    quiet::Since,
    report::{self, Ended},
    retry::Retry,
    settings::Settings,
    stop::Stopping,
    verdict::{Condition, Reason, Verdict},
    watched::Watched,
    witness::Witness,
};

/// The decision.
#[derive(Debug)]
pub struct Core {
    pub(super) settings: Settings,
    pub(super) watched: Watched,
    pub(super) evidence: Option<Evidence>,
    pub(super) drain: Option<Drain>,
    retry: Retry,
    handshakes: Handshakes,
    witness: Witness,
    stopping: Option<Stopping>,
    /// When the namespace's counters last showed a connection from anywhere, or began to be read.
    namespace_active: Option<Monotonic>,
    /// A reading that was asked for and has not come.
    reading: Option<Depth>,
    /// When the evidence is next due while nothing happens.
    pub(super) look_at: Monotonic,
    actions: VecDeque<Action>,
    pub(super) journal: Journal,
    pub(super) verdict: Option<Arc<Verdict>>,
    pub(super) drains_ended: u64,
}

/// A drain under way.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) started: Monotonic,
    pub(super) wall_time: String,
    pub(super) callers: BTreeSet<CallerId>,
    /// Until when each condition is known to have held the end.
    pub(super) held: BTreeMap<Condition, Monotonic>,
    /// What held at the last look.
    pub(super) holding: Vec<Condition>,
    /// The evidence has been read since the start.
    read: bool,
    /// S3: the witness has shown the sensor to be blind in this drain.
    pub(super) blind: Option<u64>,
    /// The sensor was not proven at some time in this drain.
    pub(super) sensor_failed: bool,
}

impl Core {
    /// A core that has seen nothing yet. It asks for a first reading at once.
    pub fn new(settings: Settings, now: Monotonic) -> Self {
        Self {
            watched: Watched::new(&settings.watch),
            settings,
            evidence: None,
            drain: None,
            retry: Retry::default(),
            handshakes: Handshakes::default(),
            witness: Witness::default(),
            stopping: None,
            namespace_active: None,
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
                    self.read(Depth::Listeners);
                }
            }
            Event::Evidence(evidence) => self.take_evidence(*evidence),
        }
        self.advance(now);
    }

    /// What is to be done now, one after the other until `None`.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Clock`] is due; `None` while an answer to an [`Action`] is awaited and no bound runs.
    pub fn poll_timeout(&self) -> Option<Monotonic> {
        let bound = self.drain.as_ref().map(|drain| drain.started + self.settings.max_wait);
        let leave = self.stopping.as_ref().map(|stopping| stopping.limit(&self.settings));
        let look = self.reading.is_none().then_some(self.look_at);
        [bound, leave, look].into_iter().flatten().min()
    }

    fn hook_called(&mut self, caller: CallerId, wall_time: String, now: Monotonic) {
        if let Some(drain) = &mut self.drain {
            drain.callers.insert(caller);
            self.journal.record(now, Transition::CallerJoined(caller));
            return;
        }
        self.journal.record(now, Transition::DrainStarted(caller));
        self.witness.start_anew();
        self.drain = Some(Drain {
            started: now,
            wall_time,
            callers: BTreeSet::from([caller]),
            held: BTreeMap::new(),
            holding: Vec::new(),
            read: false,
            blind: None,
            sensor_failed: false,
        });
        // The connections too: the witness compares from here on.
        self.read(Depth::Connections);
    }

    fn take_evidence(&mut self, evidence: Evidence) {
        let at = evidence.taken_at;
        self.reading = None;
        self.note_sensor(&evidence);
        let dropped = self.retry.update(&evidence, self.settings.retry_wait);
        if dropped > 0 {
            self.journal.record(at, Transition::SynsDropped(dropped));
        }
        let moved = self.evidence.as_ref().is_none_or(|before| before.namespace != evidence.namespace);
        if moved {
            self.namespace_active = Some(at);
        }
        let unwatched = self.watched.update(&evidence, &self.settings.watch, self.drain.is_some(), &mut self.journal);
        self.handshakes.update(&evidence);
        if let Some(drain) = &mut self.drain {
            if !drain.read {
                drain.read = true;
                self.watched.start_counting(&evidence);
            }
            drain.sensor_failed |= matches!(evidence.sensor, SensorState::Unproven { .. });
        }
        if let Some(surplus) = self.witness.surplus(&evidence) {
            self.journal.record(at, Transition::SensorBlind(surplus));
            self.witness.start_anew();
            if let Some(drain) = &mut self.drain {
                drain.blind = Some(drain.blind.unwrap_or(0).saturating_add(surplus));
            }
        }
        self.evidence = Some(evidence);
        let news = !unwatched.is_empty();
        self.actions.extend(unwatched.into_iter().map(Action::Watch));
        if news && self.drain.is_some() {
            self.read(Depth::Listeners);
        }
    }

    fn note_sensor(&mut self, evidence: &Evidence) {
        if self.evidence.as_ref().is_some_and(|before| before.sensor == evidence.sensor) {
            return;
        }
        self.journal.record(
            evidence.taken_at,
            match &evidence.sensor {
                SensorState::Proven { strategy, .. } => Transition::SensorProven(*strategy),
                SensorState::Unproven { why, .. } => Transition::SensorUnproven(why.clone()),
            },
        );
    }

    /// Decides, as far as the evidence and the time allow.
    fn advance(&mut self, now: Monotonic) {
        if let (Some(drain), Some(stopping)) = (&self.drain, &mut self.stopping) {
            stopping.drain_runs(drain.started + self.settings.max_wait);
        }
        match &self.drain {
            Some(drain) if now >= drain.started + self.settings.max_wait => self.end(Reason::Bound, now),
            Some(drain) if drain.read => self.advance_drain(now),
            Some(_) => {}
            None => self.advance_at_rest(now),
        }
        self.advance_stop(now);
    }

    fn advance_at_rest(&mut self, now: Monotonic) {
        if let Some(evidence) = &self.evidence {
            // Often enough that drops from before a drain are not older than what E2a asks about.
            self.look_at = evidence.taken_at + self.settings.retry_wait.max(Duration::from_secs(1));
        }
        if now >= self.look_at {
            self.read(Depth::Listeners);
        }
    }

    fn advance_drain(&mut self, now: Monotonic) {
        let (Some(drain), Some(evidence)) = (&mut self.drain, &self.evidence) else {
            return;
        };
        if self.reading.is_some() {
            return;
        }
        let trusted = drain.blind.is_none() && matches!(evidence.sensor, SensorState::Proven { .. });
        let holds = Holds::of(&Look {
            settings: &self.settings,
            evidence,
            watched: &self.watched,
            retry: self.retry,
            handshakes: &self.handshakes,
            since: Since {
                drain_started: drain.started,
                untrusted_active: (!trusted).then(|| self.namespace_active.unwrap_or(drain.started)),
            },
        });
        drain.holding.clear();
        for (condition, until) in holds.held(evidence.taken_at) {
            drain.holding.push(condition);
            let known = drain.held.entry(condition).or_insert(until);
            *known = until.max(*known);
        }
        match holds.next() {
            Next::End => {
                let reason = self.reason();
                self.end(reason, now);
            }
            Next::ReadConnections => self.read(Depth::Connections),
            Next::Wait(until) => {
                self.look_at = until;
                if now >= until {
                    self.read(Depth::Listeners);
                }
            }
            Next::WaitAndLook(until) => {
                self.look_at = until.max(evidence.taken_at + pace(evidence.taken_at.since(drain.started)));
                if now >= self.look_at {
                    self.read(Depth::Connections);
                }
            }
        }
    }

    /// S7.
    fn advance_stop(&mut self, now: Monotonic) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let seen = self.evidence.as_ref().filter(|evidence| evidence.taken_at >= stopping.asked_at());
        let open = seen.map(|evidence| evidence.sockets.is_ok() && self.watched.any_open());
        if now >= stopping.limit(&self.settings) || (self.drain.is_none() && open == Some(false)) {
            if stopping.leave() {
                self.journal.record(now, Transition::Stopping);
                self.actions.push_back(Action::Exit);
            }
        } else if self.drain.is_none()
            && let Some(evidence) = &self.evidence
        {
            self.look_at = self.look_at.min(evidence.taken_at + pace(now.since(stopping.asked_at())));
            if now >= self.look_at {
                self.read(Depth::Listeners);
            }
        }
    }

    /// What an end by the conditions may be called.
    fn reason(&self) -> Reason {
        let (Some(drain), Some(evidence)) = (&self.drain, &self.evidence) else {
            return Reason::Bound;
        };
        if report::unseen(drain, evidence, &self.watched).is_empty() { Reason::Quiet } else { Reason::Unverified }
    }

    fn end(&mut self, reason: Reason, now: Monotonic) {
        let Some(drain) = self.drain.take() else {
            return;
        };
        let verdict = Arc::new(report::verdict(&Ended {
            reason,
            at: now,
            drain: &drain,
            evidence: self.evidence.as_ref(),
            watched: &self.watched,
            quiet_period: self.settings.quiet_period,
        }));
        self.journal.record(now, Transition::DrainEnded(reason));
        self.drains_ended += 1;
        self.actions.extend(drain.callers.iter().map(|caller| Action::Answer(*caller, Arc::clone(&verdict))));
        self.verdict = Some(verdict);
        self.reading = None;
        self.look_at = now;
        self.advance_at_rest(now);
    }

    fn read(&mut self, depth: Depth) {
        if self.reading.is_none_or(|asked| asked < depth) {
            self.reading = Some(depth);
            self.actions.push_back(Action::Read(depth));
        }
    }
}

/// How long to wait before looking again at what may change at any moment: an eighth of the time it has taken so far,
/// so that looking costs little and delays the end by little.
fn pace(so_far: Duration) -> Duration {
    (so_far / 8).clamp(Duration::from_millis(10), Duration::from_millis(250))
}
