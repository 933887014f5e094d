//! The world's clock, and the loop that drives the core as the agent's does.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{
    cluster::Cluster,
    truth::{Truth, ms, port},
};
use crate::core::{
    clock::Monotonic,
    drain::Core,
    event::{Action, CallerId, Depth, Event, HandshakeId},
    journal::Transition,
    listener::{Family, Port},
    settings::{NoRouting, Settings, Watch},
    verdict::{Condition, Reason, Verdict},
};

/// More actions than any one event can call for.
const MANY: usize = 50;

/// When a world begins: long after the machine's start.
pub(super) const START: Monotonic = Monotonic::from_nanos(1_000_000_000_000);

pub(super) struct World {
    pub(super) core: Core,
    pub(super) truth: Truth,
    pub(super) now: Monotonic,
    pub(super) answers: Vec<Answered>,
    pub(super) exited: Option<Monotonic>,
    /// How long a reading takes.
    pub(super) reading_takes: Duration,
    /// Every reading that was asked for, with its time.
    pub(super) readings: Vec<(Monotonic, Depth)>,
    pub(super) cluster: Cluster,
    /// What was asked of the cluster, and when (ms after the beginning).
    pub(super) asked: Vec<(u64, Action)>,
    callers: u64,
}

/// A caller that has its answer.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) at: Monotonic,
    pub(super) caller: CallerId,
    pub(super) verdict: Arc<Verdict>,
    /// The ports whose listener would reset something if it closed now.
    pub(super) would_reset: BTreeSet<Port>,
}

/// What the configuration's defaults make of the settings: quiet 2 s, retry 8 s, bound 20 s.
pub(super) fn settings() -> Settings {
    Settings {
        watch: Watch::Auto { exclude: Vec::new() },
        quiet_period: ms(2000),
        retry_wait: ms(8000),
        min_wait: ms(0),
        max_wait: ms(20_000),
        handshake_grace: ms(3000),
        exit_at_connections: None,
        routing: None,
        no_routing: NoRouting::Off,
        restart_guard: None,
        fail_after: None,
        stop_reserve: ms(10_000),
        linger: ms(0),
    }
}

/// `millis` after the world's beginning.
pub(super) fn at(millis: u64) -> Monotonic {
    START + ms(millis)
}

impl World {
    /// A world that has just begun: the core has made its first reading.
    pub(super) fn with(settings: Settings, truth: Truth) -> Self {
        let core = Core::new(settings, START);
        let (answers, readings) = (Vec::new(), Vec::new());
        let (exited, reading_takes) = (None, Duration::ZERO);
        let mut world = Self {
            core,
            truth,
            now: START,
            answers,
            exited,
            reading_takes,
            readings,
            cluster: Cluster::new(),
            asked: Vec::new(),
            callers: 0,
        };
        world.handle(Event::Clock);
        world
    }

    /// A world in which the agent has been counting for ten seconds; the clock's `at(0)` is then.
    pub(super) fn at_rest(settings: Settings) -> Self {
        let mut world = Self::with(settings, Truth::new(START - ms(10_000)));
        for attempts in world.truth.attempts.values_mut() {
            attempts.watched_since = START - ms(10_000);
        }
        world.look();
        world
    }

    /// Lets the time pass until `millis` after the beginning, and the core do what it wants to.
    pub(super) fn run_to(&mut self, millis: u64) -> &mut Self {
        self.run(at(millis))
    }

    pub(super) fn run(&mut self, until: Monotonic) -> &mut Self {
        while let Some(due) = self.core.poll_timeout().filter(|due| *due <= until && self.exited.is_none()) {
            self.now = self.now.max(due);
            self.handle(Event::Clock);
            let next = self.core.poll_timeout();
            assert!(
                next.is_none_or(|next| next > self.now),
                "{:?}: due again, with nothing done",
                self.now.since(START)
            );
        }
        self.now = self.now.max(until);
        self
    }

    /// Runs until every caller has its answer.
    pub(super) fn run_out(&mut self) -> &Answered {
        let end = self.now + Duration::from_secs(100);
        self.run(end);
        self.answers.last().expect("an answer within 100 s")
    }

    pub(super) fn handle(&mut self, event: Event) {
        self.core.handle(event, self.now);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        let mut actions = 0;
        while let Some(action) = self.core.poll() {
            actions += 1;
            assert!(actions < MANY, "{:?}: one action after the other", self.now.since(START));
            match action {
                Action::Read(depth) => {
                    self.readings.push((self.now, depth));
                    let evidence = self.truth.evidence(depth, self.now);
                    self.now = self.now + self.reading_takes;
                    self.core.handle(Event::Evidence(Box::new(evidence)), self.now);
                }
                Action::Watch(port) => self.truth.watch(port, self.now),
                Action::Answer(caller, verdict) => {
                    let would_reset = self.truth.would_reset(self.core.settings.handshake_grace, self.now);
                    self.answers.push(Answered { at: self.now, caller, verdict, would_reset });
                }
                Action::Exit => self.exited = Some(self.now),
                ask => self.ask(ask),
            }
        }
    }

    /// Milliseconds after the world's beginning.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.now.since(START).as_millis()).unwrap()
    }

    /// A hook is called.
    pub(super) fn hook(&mut self) -> CallerId {
        self.callers += 1;
        let caller = CallerId(self.callers);
        self.handle(Event::HookCalled { caller, wall_time: "2026-11-29T20:44:09Z".to_owned() });
        caller
    }

    /// Somebody looks at the status: a shallow reading that the core has not asked for.
    pub(super) fn look(&mut self) {
        let evidence = self.truth.evidence(Depth::Listeners, self.now);
        self.handle(Event::Evidence(Box::new(evidence)));
    }

    /// A SYN to a port over IPv4.
    pub(super) fn syn(&mut self, number: u16) -> &mut Self {
        self.truth.syn(port(number), Family::V4, self.now);
        self
    }

    /// A connection to a port over IPv4 that is served.
    pub(super) fn connect(&mut self, number: u16) -> &mut Self {
        self.truth.connect(port(number), Family::V4, self.now);
        self
    }

    pub(super) fn begin(&mut self, number: u16) -> HandshakeId {
        self.truth.begin(port(number), Family::V4, self.now)
    }

    /// Connections to port 80, one every `every` from now until `until`.
    pub(super) fn traffic(&mut self, every: u64, until: u64) -> &mut Self {
        while self.now + ms(every) <= at(until) {
            let next = self.now + ms(every);
            self.run(next);
            self.connect(80);
        }
        self
    }

    /// What holds the drain under way, as the status shows it.
    pub(super) fn holding(&mut self) -> Vec<Condition> {
        self.look();
        self.core.drain_view(self.now).expect("a drain under way").holding
    }

    pub(super) fn reasons(&self) -> Vec<Reason> {
        self.answers.iter().map(Answered::reason).collect()
    }

    pub(super) fn journal(&self) -> Vec<Transition> {
        self.core.journal().entries().map(|entry| entry.what.clone()).collect()
    }
}

impl Answered {
    /// Milliseconds after the world's beginning.
    pub(super) fn at_ms(&self) -> u64 {
        u64::try_from(self.at.since(START).as_millis()).unwrap()
    }

    pub(super) fn reason(&self) -> Reason {
        self.verdict.reason
    }

    /// The kinds of things that were not observed, `routing` aside: this version never does.
    pub(super) fn unseen(&self) -> Vec<&str> {
        let what = self.verdict.not_observed.iter().map(|thing| thing.what.as_str());
        what.filter(|what| *what != "routing").collect()
    }
}
