//! The promises that hold whatever happens, over random events in random order.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use proptest::prelude::*;

use super::{
    steps::{Step, any_settings, step},
    truth::{Truth, ms, port},
    world::{Answered, START, World},
};
use crate::core::{
    clock::Monotonic,
    event::{CallerId, Event, HandshakeId},
    listener::Port,
    settings::Settings,
    verdict::Reason,
};

/// What the script knows, and the core is held to.
struct Script {
    world: World,
    drains: Vec<Drain>,
    /// Every caller, with the drain that it called for or joined.
    called: BTreeMap<CallerId, usize>,
    left: BTreeSet<CallerId>,
    /// When the sensor was taken away or put back.
    sensor_changed: Vec<Monotonic>,
}

/// A drain, as the script knows it.
struct Drain {
    started: Monotonic,
    open: BTreeSet<Port>,
}

impl Script {
    fn new(settings: Settings, reading_takes: Duration) -> Self {
        let mut world = World::with(settings, Truth::new(START));
        world.reading_takes = reading_takes;
        let (drains, called) = (Vec::new(), BTreeMap::new());
        Self { world, drains, called, left: BTreeSet::new(), sensor_changed: Vec::new() }
    }

    fn take(&mut self, step: Step) {
        let now = self.world.now;
        match step {
            Step::Wait(micros) => {
                self.world.run(now + Duration::from_micros(micros));
            }
            Step::Early(part) => self.early(part),
            Step::Hook => {
                if self.world.core.drain_view(now).is_none() {
                    let open = self.open();
                    self.drains.push(Drain { started: now, open });
                }
                let caller = self.world.hook();
                self.called.insert(caller, self.drains.len() - 1);
            }
            Step::Leave(caller) => {
                let caller = CallerId(caller);
                if !self.world.answers.iter().any(|answered| answered.caller == caller) {
                    self.left.extend(self.called.contains_key(&caller).then_some(caller));
                }
                self.world.handle(Event::HookLeft { caller });
            }
            Step::Terminate => self.world.handle(Event::Terminate),
            Step::Look => self.world.look(),
            Step::BreakSensor | Step::MendSensor => {
                self.sensor_changed.push(now);
                change(&mut self.world.truth, step, now);
            }
            step => change(&mut self.world.truth, step, now),
        }
    }

    /// `poll_timeout` never lies: before it nothing is to be done, and it stays as it was.
    fn early(&mut self, part: u32) {
        let world = &mut self.world;
        if let Some(due) = world.core.poll_timeout() {
            let left = due.since(world.now);
            world.now = world.now + left / 1000 * part;
            world.core.handle(Event::Clock, world.now);
            assert_eq!(world.core.poll(), None, "it was due at {due:?}");
            assert_eq!(world.core.poll_timeout(), Some(due));
        }
    }

    /// The ports that are open and to be watched.
    fn open(&self) -> BTreeSet<Port> {
        let wanted = |port: &&Port| self.world.core.settings.watch.wants(**port);
        self.world.truth.listeners.keys().filter(wanted).copied().collect()
    }

    fn watched(&self) -> BTreeSet<Port> {
        self.world.core.totals().iter().map(|listener| listener.port).collect()
    }

    /// Takes every step, and lets the time pass until nothing is due any more.
    fn play(&mut self, steps: Vec<Step>) -> Result<(), TestCaseError> {
        for step in steps {
            if self.world.exited.is_some() {
                break;
            }
            let (before, drain) = (self.watched(), self.drains.len());
            let draining = self.world.core.drain_view(self.world.now).is_some();
            self.take(step);
            if draining && self.world.core.drain_view(self.world.now).is_some() && drain == self.drains.len() {
                prop_assert!(self.watched().is_superset(&before), "S9: {before:?} became {:?}", self.watched());
            }
        }
        let end = self.world.now + ms(60_000);
        self.world.run(end);
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let world = &self.world;
        prop_assert!(world.core.journal().entries().count() <= 256);
        prop_assert!(world.core.drain_view(world.now).is_none(), "S1, S7: a drain is still under way");
        for (caller, drain) in &self.called {
            let mut answers = world.answers.iter().filter(|answered| answered.caller == *caller);
            match answers.next() {
                Some(answered) => self.check_answer(&self.drains[*drain], answered)?,
                None => prop_assert!(self.left.contains(caller), "caller {} got no answer", caller.0),
            }
            prop_assert!(answers.next().is_none(), "caller {} got two answers", caller.0);
        }
        Ok(())
    }

    fn check_answer(&self, drain: &Drain, answered: &Answered) -> Result<(), TestCaseError> {
        let settings = &self.world.core.settings;
        let lasted = answered.at.since(drain.started);
        // A reading that is under way at the bound is not broken off.
        let latest = settings.max_wait + self.world.reading_takes;
        prop_assert!(lasted >= settings.min_wait && lasted <= latest, "S1: it lasted {lasted:?}");
        prop_assert_eq!(answered.reason() == Reason::Bound, lasted >= settings.max_wait, "S1: it lasted {:?}", lasted);
        if self.world.reading_takes.is_zero() {
            prop_assert_eq!(answered.reason() == Reason::Bound, !answered.verdict.holding.is_empty());
        }
        let told: BTreeSet<_> = answered.verdict.listeners.iter().map(|listener| listener.port).collect();
        if answered.reason() != Reason::Bound {
            let reset = answered.would_reset.intersection(&told).next();
            prop_assert!(reset.is_none(), "E3: the listener of {reset:?} still has something to lose");
        }
        if answered.reason() == Reason::Quiet {
            prop_assert!(told.is_superset(&drain.open), "S9: {told:?} of {:?}", drain.open);
            self.check_quiet(drain, answered)?;
        }
        Ok(())
    }

    /// E2 and S3, by what the script knows to be true.
    fn check_quiet(&self, drain: &Drain, answered: &Answered) -> Result<(), TestCaseError> {
        let period = self.world.core.settings.quiet_period;
        prop_assert!(answered.at.since(drain.started) >= period, "E2: it lasted less than the quiet period");
        for listener in &answered.verdict.listeners {
            for counts in &listener.families {
                let late = self.world.truth.came.iter().find(|came| {
                    (came.port, came.family) == (listener.port, counts.family)
                        && came.at < answered.at
                        && answered.at.since(came.at) < period
                });
                prop_assert!(late.is_none(), "E2: {late:?} came within {period:?} of the end");
            }
        }
        let changed = self.sensor_changed.iter().find(|time| **time > drain.started && **time < answered.at);
        prop_assert!(changed.is_none(), "S3: the sensor changed in the drain, at {changed:?}");
        Ok(())
    }
}

fn change(truth: &mut Truth, step: Step, now: Monotonic) {
    match step {
        Step::Wait(_) | Step::Early(_) | Step::Hook | Step::Leave(_) | Step::Terminate | Step::Look => {}
        Step::Syn(class, number, family) => truth.syn_of(class, port(number), family, now),
        Step::Connect(number, family) => truth.connect(port(number), family, now),
        Step::Drop(number, family) => truth.drop_syn(port(number), family, now),
        Step::Opaque(number, family) => truth.opaque(number.map(port), family, now),
        Step::Begin(number, family) => {
            truth.begin(port(number), family, now);
        }
        Step::Complete(id) => truth.complete(HandshakeId(id)),
        Step::SendCookie(number, family) => truth.send_cookie(port(number), family, now),
        Step::TakeCookie => truth.take_cookie(),
        Step::Open(number) => {
            truth.listeners.insert(port(number), 0);
        }
        Step::Close(number) => {
            truth.listeners.remove(&port(number));
        }
        Step::Queue(number, queue) => {
            truth.listeners.entry(port(number)).and_modify(|length| *length = queue);
        }
        Step::Established(number, count) => {
            truth.established.insert(port(number), count);
        }
        Step::BreakSensor => truth.break_sensor("gone"),
        Step::MendSensor => truth.mend_sensor(now),
        Step::BreakSockets(broken) => truth.sockets_broken = broken.then(|| "no sock_diag".to_owned()),
        Step::BreakCounters(broken) => truth.counters_broken = broken.then(|| "no /proc".to_owned()),
        Step::Address(family, has) => *truth.families.get_mut(family) = has,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_promises_hold(
        settings in any_settings(),
        reading_takes in prop::sample::select(&[0, 0, 1, 20, 400][..]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut script = Script::new(settings, ms(reading_takes));
        script.play(steps)?;
        script.check()?;
    }
}
