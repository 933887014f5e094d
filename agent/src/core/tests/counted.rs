//! What the verdict and the status say was counted.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    class::Class,
    event::{CallerId, Event},
    listener::Family,
    settings::Settings,
    verdict::{FamilyCounts, Reason},
};

fn new(families: &[FamilyCounts]) -> Vec<Option<u64>> {
    families.iter().map(|counts| counts.new).collect()
}

#[test]
fn counts_in_a_verdict_are_since_the_hooks_call() {
    let mut world = World::at_rest(settings());
    world.connect(80).connect(80).run_to(3000);
    world.truth.connect(port(80), Family::V6, world.now);
    assert_eq!(new(&world.core.totals()[0].families), [Some(0), Some(0)], "not read since");
    world.run_to(3001);
    world.hook();
    world.run_to(3500).connect(80);
    world.look();
    assert_eq!(new(&world.core.listeners()[0].families), [Some(1), Some(0)]);
    assert_eq!(new(&world.core.totals()[0].families), [Some(3), Some(1)]);
    let answered = world.run_out().clone();
    assert_eq!(new(&answered.verdict.listeners[0].families), [Some(1), Some(0)]);
    assert_eq!(new(&world.core.listeners()[0].families), [Some(3), Some(1)], "no drain runs");
    world.hook();
    assert_eq!(new(&world.run_out().verdict.listeners[0].families), [Some(0), Some(0)]);
}

#[test]
fn an_attempt_between_the_call_and_its_first_reading_is_counted() {
    let mut world = World::at_rest(settings());
    world.connect(80).run_to(1000);
    world.core.handle(Event::HookCalled { caller: CallerId(9), wall_time: String::new() }, at(999));
    world.connect(80);
    world.look(); // the driver now does what was asked
    let answered = world.run_out();
    assert_eq!(answered.at, at(3000));
    assert_eq!(new(&answered.verdict.listeners[0].families), [Some(1), Some(0)]);
}

#[test]
fn a_port_that_comes_back_in_the_drain_is_counted_since_the_hooks_call() {
    let mut world = World::at_rest(settings());
    world.connect(443).run_to(1000);
    world.truth.listeners.remove(&port(443));
    world.run_to(30_000); // it has left the watched set
    assert_eq!(world.core.totals().len(), 1);
    world.hook();
    world.run_to(30_500);
    world.truth.listeners.insert(port(443), 0);
    world.look();
    world.run_to(31_000).connect(443);
    let answered = world.run_out();
    assert_eq!(answered.at, at(33_000));
    assert_eq!(new(&answered.verdict.listeners[1].families), [Some(1), Some(0)]);
}

#[test]
fn what_nothing_counts_is_null_and_not_zero() {
    let mut world = World::at_rest(settings());
    world.truth.counters_only();
    world.hook();
    let answered = world.run_out();
    assert_eq!(answered.reason(), Reason::Unverified);
    for counts in answered.verdict.listeners.iter().flat_map(|listener| &listener.families) {
        assert!(Class::ALL.into_iter().all(|class| counts.count(class).is_none()), "{counts:?}");
        assert_eq!(counts.last_attempt_ago_ms, None);
        assert!(counts.quiet, "as far as is known");
    }
}

#[test]
fn quiet_in_the_status_is_what_the_rule_says() {
    let quiet = |world: &World| world.core.listeners()[0].families[0].quiet;
    let mut world = World::at_rest(settings());
    assert!(quiet(&world));
    world.connect(80).run_to(1999);
    world.look();
    assert!(!quiet(&world));
    world.run_to(2000);
    world.look();
    assert!(quiet(&world));
    world.run_to(3000);
    world.truth.mend_sensor(world.now);
    world.look();
    assert!(!quiet(&world), "not since the sensor was proven");
    world.run_to(6000);
    world.truth.break_sensor("gone");
    world.truth.counters_broken = Some("no /proc".to_owned());
    world.look();
    assert!(!quiet(&world), "nothing speaks for it");
}

#[test]
fn ages_are_told_from_the_last_reading_and_not_past_it() {
    // At the bound, what came since the last reading is not known.
    let mut world = World::at_rest(Settings { max_wait: ms(5000), ..settings() });
    world.hook();
    world.traffic(100, 5000);
    let answered = world.run_out();
    let counts = &answered.verdict.listeners[0].families[0];
    assert_eq!((answered.at, answered.reason(), counts.quiet), (at(5000), Reason::Bound, false));
    assert_eq!((counts.new, counts.last_attempt_ago_ms), (Some(48), Some(100)), "read at 4900");
}

#[test]
fn probes_are_counted_where_one_was_told_and_are_null_where_none_was() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.syn_of(Class::Probe, port(80), Family::V4, world.now);
    world.look();
    let families = &world.core.listeners()[0].families;
    assert_eq!((families[0].probe, families[1].probe), (Some(1), None));
}
