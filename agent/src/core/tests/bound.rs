//! S1: the bound.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    event::{CallerId, Depth, Event},
    listener::Family,
    settings::Settings,
    verdict::{Condition, Reason},
    view::Span,
};

#[test]
fn s1_attempts_that_never_stop_end_at_the_bound() {
    let mut world = World::at_rest(settings());
    world.run_to(3000);
    world.hook();
    world.traffic(10, 30_000);
    let answered = world.answers.first().unwrap();
    assert_eq!((answered.at, answered.reason()), (at(23_000), Reason::Bound));
    assert_eq!((answered.verdict.duration_ms, &answered.verdict.holding[..]), (20_000, &[Condition::Quiet][..]));
}

#[test]
fn s1_the_bound_is_the_first_callers() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.traffic(100, 10_000);
    world.hook();
    world.traffic(100, 25_000);
    assert_eq!(world.answers.iter().map(|answered| answered.at).collect::<Vec<_>>(), [at(20_000); 2]);
}

#[test]
fn s1_the_bound_names_everything_that_still_holds() {
    let mut world = World::at_rest(Settings { exit_at_connections: Some(0), ..settings() });
    world.hook();
    world.truth.established.insert(port(80), 1);
    world.traffic(100, 19_000);
    world.begin(80);
    world.truth.drop_syn(port(80), Family::V4, world.now);
    let answered = world.run_out();
    let all = [Condition::Quiet, Condition::Retry, Condition::Handshakes, Condition::Connections];
    assert_eq!((answered.reason(), &answered.verdict.holding[..]), (Reason::Bound, &all[..]));
}

#[test]
fn s1_the_bound_does_not_name_what_holds_no_longer() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.insert(port(80), 1);
    world.hook();
    world.traffic(100, 5000);
    world.truth.listeners.insert(port(80), 0);
    world.traffic(100, 25_000);
    assert_eq!(world.answers[0].verdict.holding, [Condition::Quiet]);
}

#[test]
fn s1_a_call_at_the_bound_begins_a_drain_of_its_own() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.traffic(100, 19_999);
    world.now = at(20_000); // the clock's event comes a little later
    let caller = world.hook();
    assert_eq!(world.answers.len(), 1);
    let answered = world.run_out();
    assert_eq!((answered.caller, answered.at, answered.reason()), (caller, at(22_000), Reason::Quiet));
}

#[test]
fn s1_a_drain_lasts_from_the_first_call_to_its_bound() {
    let mut world = World::at_rest(settings());
    assert_eq!(world.core.drain_span(), None);
    world.run_to(300);
    world.hook();
    world.traffic(400, 5000);
    world.hook();
    assert_eq!(world.core.drain_span(), Some(Span { started: at(300), bound: at(20_300) }));
    world.run_out();
    assert_eq!(world.core.drain_span(), None);
}

#[test]
fn s1_a_reading_that_never_comes_does_not_hold_the_bound() {
    let mut world = World::at_rest(settings());
    world.core.handle(Event::HookCalled { caller: CallerId(9), wall_time: String::new() }, at(0));
    while world.core.poll().is_some() {}
    assert_eq!(world.core.poll_timeout(), Some(at(20_000)));
    world.connect(80).now = at(20_000);
    world.handle(Event::Clock);
    let answered = world.answers.first().unwrap();
    assert_eq!((answered.reason(), answered.unseen()), (Reason::Bound, vec!["sensor"]));
    assert!(answered.verdict.listeners.is_empty() && !answered.verdict.sensor.healthy);
}

#[test]
fn s1_nothing_is_read_before_the_answer() {
    // A reading that ends after the bound shows a listener that is to be counted and read from then on.
    let mut world = World::at_rest(Settings { min_wait: ms(19_800), ..settings() });
    world.hook();
    world.run_to(19_700);
    world.reading_takes = ms(300);
    world.truth.listeners.insert(port(8080), 0);
    let answered = world.run_out();
    assert!(answered.at < at(20_200), "{}", answered.at_ms());
    assert_eq!(answered.reason(), Reason::Bound);
}

#[test]
fn s1_a_bound_shorter_than_the_last_look_before_it() {
    let mut world = World::at_rest(Settings { max_wait: ms(20), quiet_period: ms(20), ..settings() });
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20), Reason::Bound));
}

#[test]
fn s1_shortly_before_the_bound_everything_is_read_once_more() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.traffic(1, 21_000);
    let late: Vec<_> = world.readings.iter().filter(|(time, _)| (at(19_900)..at(20_000)).contains(time)).collect();
    assert_eq!(late, [&(at(19_900), Depth::Handshakes)]);
}

#[test]
fn s1_a_bound_that_becomes_known_in_a_drain_makes_it_longer_and_never_shorter() {
    for (known, ends) in [(50_000, 50_000), (5000, 20_000), (0, 20_000)] {
        let mut world = World::at_rest(settings());
        world.hook();
        world.traffic(10, 6000);
        world.handle(Event::MaxWaitKnown(ms(known)));
        world.traffic(10, 60_000);
        let answered = world.answers.first().unwrap();
        assert_eq!((answered.at, answered.reason()), (at(ends), Reason::Bound), "{known}");
        let replayed = world.core.recording().expect("a recording").replay();
        assert_eq!(replayed.as_ref(), Some(&answered.verdict));
    }
}

#[test]
fn s1_a_bound_that_is_known_before_is_that_of_every_drain() {
    let mut world = World::at_rest(settings());
    world.handle(Event::MaxWaitKnown(ms(9000)));
    world.run_to(1000);
    world.hook();
    world.traffic(10, 20_000);
    let answered = world.answers.first().unwrap();
    assert_eq!((answered.at, answered.reason()), (at(10_000), Reason::Bound));
}
