//! S3: a sensor that is not known to see everything never yields `quiet`.

use super::{
    truth::{Truth, port},
    world::{START, World, at, settings},
};
use crate::core::{
    event::{ByFamily, SensorState},
    journal::Transition,
    listener::Protocol,
    settings::{Settings, Watch},
    verdict::{Condition, NotObserved, Reason, Strategy},
};

fn sensor_entries(verdict: &crate::core::verdict::Verdict) -> Vec<&NotObserved> {
    verdict.not_observed.iter().filter(|thing| thing.what == "sensor").collect()
}

#[test]
fn s3_the_counters_alone_yield_unverified() {
    let mut world = World::at_rest(settings());
    world.truth.counters_only();
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2000), Reason::Unverified));
    let sensor = &answered.verdict.sensor;
    assert_eq!((sensor.strategy, sensor.healthy), (Strategy::Counters, false));
    assert_eq!(sensor_entries(&answered.verdict).len(), 1);
}

#[test]
fn s3_for_quic_nothing_speaks_but_a_sensor_that_counts_it() {
    let watch = || Settings { watch: Watch::Ports(vec![port(443).of(Protocol::Udp)]), ..settings() };
    let mut world = World::at_rest(watch());
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2000), Reason::Quiet));
    let mut world = World::at_rest(watch());
    world.truth.counters_only();
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert!(answered.verdict.holding.contains(&Condition::Quiet));
}

#[test]
fn s3_under_the_counters_any_sign_of_life_is_an_attempt() {
    type Sign = fn(&mut World);
    let signs: [Sign; 5] = [
        |world| world.truth.counters.passive_opens += 1,
        |world| world.truth.counters.resets_sent += 1,
        |world| world.truth.counters.dropped += 1,
        |world| world.truth.counters.cookies_sent += 1,
        |world| world.truth.counters.cookies_received += 1,
    ];
    for (number, sign) in signs.into_iter().enumerate() {
        let mut world = World::at_rest(settings());
        world.truth.counters_only();
        world.hook();
        world.run_to(1900);
        sign(&mut world);
        let answered = world.run_out();
        assert!(answered.at >= at(4000), "sign {number} is seen at 2000: {}", answered.at_ms());
        assert_eq!(answered.reason(), Reason::Unverified);
    }
}

#[test]
fn s3_with_neither_sensor_nor_counters_the_drain_holds_to_the_bound() {
    let mut world = World::at_rest(settings());
    world.truth.counters_only();
    world.truth.counters_broken = Some("no /proc".to_owned());
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert!(answered.verdict.holding.contains(&Condition::Quiet));
}

#[test]
fn s3_a_sensor_that_fails_in_the_drain_and_comes_back_yields_unverified() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500).connect(80);
    world.run_to(1000);
    world.truth.break_sensor("somebody took it away");
    world.run_to(2600); // noticed at 2500
    world.truth.mend_sensor(world.now);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(4600), Reason::Unverified), "quiet again from 2600 on");
    assert!(!answered.verdict.sensor.healthy);
    let entries = sensor_entries(&answered.verdict);
    assert!(entries[0].why.contains("for a part of this drain: somebody took it away"), "{}", entries[0].why);
    let told = world.journal();
    assert!(told.contains(&Transition::SensorUnproven("somebody took it away".to_owned())));
}

#[test]
fn s3_a_break_between_two_readings_yields_unverified() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.mend_sensor(world.now);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason(), answered.unseen()), (at(2500), Reason::Unverified, vec!["sensor"]));
    assert!(!answered.verdict.sensor.healthy);
}

#[test]
fn s3_a_break_before_the_drain_is_none_of_its() {
    let mut world = World::at_rest(settings());
    world.truth.break_sensor("gone");
    world.look();
    world.run_to(500);
    world.truth.mend_sensor(world.now);
    world.run_to(600);
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2600), Reason::Quiet));
    world.hook();
    world.run_out();
    assert_eq!(world.answers[1].reason(), Reason::Quiet);
}

#[test]
fn s3_while_the_sensor_is_gone_quiet_needs_the_counters_to_be_still() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(100);
    world.truth.break_sensor("gone");
    for second in 1..10 {
        world.run_to(second * 1000).connect(80); // unseen
    }
    assert!(world.answers.is_empty());
    let answered = world.run_out();
    assert!(answered.at >= at(11_000) && answered.at <= at(13_000), "{}", answered.at_ms());
    assert_eq!(answered.reason(), Reason::Unverified);
}

#[test]
fn s3_the_status_shows_a_sensor_that_was_found_blind() {
    let mut world = World::at_rest(settings());
    world.hook();
    assert_eq!(world.core.blind(), None);
    world.truth.sees = false;
    world.connect(80);
    world.look();
    assert!(world.core.blind().unwrap().starts_with("1 more handshakes"));
    world.run_out();
    assert_eq!(world.core.blind(), None, "told by the verdict");
}

#[test]
fn s3_each_thing_that_was_not_observed_forbids_quiet() {
    let mut world = World::at_rest(settings());
    let why = "no program on it".to_owned();
    world.truth.not_observed =
        vec![NotObserved { what: "interface".to_owned(), name: Some("eth1".to_owned()), family: None, why }];
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.reason(), answered.unseen()), (Reason::Unverified, vec!["interface"]));
    let mut world = World::at_rest(settings());
    world.truth.listeners.clear();
    world.run_to(30_000);
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.reason(), answered.unseen()), (Reason::Unverified, vec!["listener"]));
}

#[test]
fn s3_quiet_still_says_that_routing_was_not_watched() {
    let mut world = World::at_rest(settings());
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.reason(), answered.unseen()), (Reason::Quiet, vec![]));
    assert_eq!(answered.verdict.not_observed.len(), 1);
    assert!(answered.verdict.sensor.healthy && answered.verdict.holding.is_empty());
}

#[test]
fn nothing_is_said_of_what_could_not_be_read() {
    let mut truth = Truth::new(START);
    truth.sockets_broken = Some("no sock_diag".to_owned());
    truth.families = ByFamily { v4: false, v6: false };
    let why = "netlink refused".to_owned();
    truth.not_observed = vec![NotObserved { what: "address".to_owned(), name: None, family: None, why }];
    let mut world = World::with(settings(), truth);
    world.hook();
    let answered = world.run_out();
    // Neither "nothing listens" nor "no address": the two are not known.
    assert_eq!((answered.reason(), answered.unseen()), (Reason::Bound, vec!["address", "sockets"]));
}

/// A sensor that sees a SYN only where it meets a listener.
fn on_a_control_group() -> World {
    let mut world = World::at_rest(settings());
    world.truth.sensor = SensorState::Proven { strategy: Strategy::Cgroup, since: world.now };
    world
}

#[test]
fn s3_a_sensor_that_sees_listeners_alone_is_enough_while_all_are_open() {
    let mut world = on_a_control_group();
    world.hook();
    world.run_to(500).connect(80);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(2500), Reason::Quiet));
    let counts = &answered.verdict.listeners[0].families[0];
    assert_eq!((counts.new, counts.refused, counts.stray), (Some(1), None, None), "what it cannot tell is not 0");
    assert_eq!((answered.verdict.sensor.strategy, answered.verdict.sensor.witness), (Strategy::Cgroup, false));
}

#[test]
fn s3_a_closed_port_is_not_observed_by_a_sensor_that_sees_listeners_alone() {
    let mut world = on_a_control_group();
    world.hook();
    world.run_to(500);
    world.truth.listeners.remove(&port(443));
    let answered = world.run_out();
    assert_eq!(answered.reason(), Reason::Unverified);
    let unseen: Vec<_> = answered.verdict.not_observed.iter().filter(|thing| thing.what == "listener").collect();
    assert_eq!(unseen.iter().map(|thing| thing.name.as_deref()).collect::<Vec<_>>(), [Some("443")]);
    // One that sees every SYN has seen that none came.
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(500);
    world.truth.listeners.remove(&port(443));
    assert_eq!(world.run_out().reason(), Reason::Quiet);
}
