//! S9: the watched set.

use super::{
    truth::{Truth, ms, port},
    world::{START, World, at, settings},
};
use crate::core::{
    journal::Transition,
    settings::{Settings, Watch},
    verdict::Reason,
};

fn watched(world: &World) -> Vec<u16> {
    world.core.totals().iter().map(|listener| listener.port.number()).collect()
}

#[test]
fn s9_at_rest_the_set_follows_the_open_listeners() {
    let mut world = World::at_rest(settings());
    assert_eq!(watched(&world), [80, 443]);
    world.truth.listeners.remove(&port(443));
    world.truth.listeners.insert(port(8080), 0);
    world.run_to(30_000);
    assert_eq!(watched(&world), [80, 8080]);
    world.truth.listeners.insert(port(443), 0);
    world.run_to(40_000);
    assert_eq!(watched(&world), [80, 443, 8080]);
}

#[test]
fn s9_at_rest_a_closed_listener_is_watched_for_ten_seconds() {
    let mut world = World::at_rest(settings());
    world.run_to(1000);
    world.truth.listeners.remove(&port(443));
    world.look();
    world.run_to(10_999).look();
    assert_eq!(watched(&world), [80, 443]);
    world.run_to(11_000).look();
    assert_eq!(watched(&world), [80]);
}

#[test]
fn s9_a_listener_that_closed_just_before_the_hooks_call_stays_watched() {
    let mut world = World::at_rest(settings());
    world.run_to(1000);
    world.truth.listeners.remove(&port(443));
    world.look(); // somebody asks for the status
    world.run_to(5000);
    world.hook();
    world.run_to(6000).syn(443); // refused
    let answered = world.run_out();
    assert_eq!(answered.at, at(8000));
    let [_, closed] = &answered.verdict.listeners[..] else { panic!("two listeners") };
    assert_eq!((closed.port, closed.closed_at_ms, closed.families[0].new), (port(443), Some(0), Some(1)));
}

#[test]
fn s9_in_a_drain_the_set_only_grows() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.traffic(100, 3000);
    world.truth.listeners.clear();
    world.truth.listeners.insert(port(8080), 0);
    world.traffic(100, 6000);
    assert_eq!(watched(&world), [80, 443, 8080]);
    world.run_out();
    world.run(at(200_000));
    assert_eq!(watched(&world), [8080], "at rest it follows again");
}

#[test]
fn s9_a_listener_that_closes_stays_watched_and_is_told() {
    let mut world = World::at_rest(settings());
    world.run_to(1000);
    world.hook();
    world.run_to(1500);
    world.truth.listeners.remove(&port(443));
    world.look();
    world.run_to(2000).syn(443); // refused
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(4000), Reason::Quiet));
    let [open, closed] = &answered.verdict.listeners[..] else { panic!("two listeners") };
    assert_eq!((open.closed_at_ms, closed.closed_at_ms), (None, Some(500)));
    assert_eq!(closed.families[0].new, Some(1));
    assert!(world.journal().contains(&Transition::ListenerClosed(port(443))));
}

#[test]
fn s9_a_listener_that_closes_with_the_hooks_call_is_told_too() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.remove(&port(443));
    world.hook(); // the first reading shows it
    let answered = world.run_out();
    assert_eq!(answered.verdict.listeners[1].closed_at_ms, Some(0));
}

#[test]
fn s9_a_listener_that_comes_back_is_open_again() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.listeners.remove(&port(443));
    world.traffic(100, 3000);
    world.truth.listeners.insert(port(443), 0);
    let answered = world.run_out();
    assert_eq!(answered.verdict.listeners[1].closed_at_ms, None);
    let told = world.journal();
    let closed = told.iter().position(|what| *what == Transition::ListenerClosed(port(443)));
    let opened = told.iter().position(|what| *what == Transition::ListenerReopened(port(443)));
    assert!(closed.is_some() && closed < opened, "{told:?}");
}

#[test]
fn s9_a_listener_that_appears_in_the_drain_is_quiet_from_then_on() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000);
    world.truth.listeners.insert(port(8080), 0);
    world.look();
    world.run_to(2500).connect(8080);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(4500), Reason::Quiet));
    assert_eq!(answered.verdict.listeners[2].families[0].new, Some(1));
    assert!(world.journal().contains(&Transition::ListenerFound(port(8080))));
}

#[test]
fn s9_a_listener_that_appears_in_the_drain_costs_one_quiet_period_and_no_more() {
    let mut world = World::at_rest(Settings { quiet_period: ms(100), ..settings() });
    world.hook();
    world.traffic(50, 10_000);
    world.truth.listeners.insert(port(8080), 0);
    let end = world.run_out().at;
    assert_eq!(end, world.truth.attempts[&port(8080)].watched_since + ms(100));
}

#[test]
fn s9_listed_ports_are_watched_whether_or_not_something_listens() {
    let mut world = World::at_rest(Settings { watch: Watch::Ports(vec![port(80), port(81)]), ..settings() });
    assert_eq!(watched(&world), [80, 81]);
    world.hook();
    world.run_to(1000).syn(81); // refused, and counts
    world.truth.listeners.insert(port(8080), 0);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(3000), Reason::Quiet));
    let closed: Vec<_> = answered.verdict.listeners.iter().map(|listener| listener.closed_at_ms).collect();
    assert_eq!(closed, [None, Some(0)]);
}

#[test]
fn s9_excluded_ports_are_not_watched() {
    let mut world = World::at_rest(Settings { watch: Watch::Auto { exclude: vec![port(443)] }, ..settings() });
    assert_eq!(watched(&world), [80]);
    world.hook();
    world.run_to(1900).connect(443);
    assert_eq!(world.run_out().at, at(2000));
}

#[test]
fn s9_what_cannot_be_read_closes_nothing() {
    let mut world = World::at_rest(settings());
    world.truth.sockets_broken = Some("no sock_diag".to_owned());
    world.run_to(50_000);
    assert_eq!(watched(&world), [80, 443]);
    assert!(!world.journal().iter().any(|what| matches!(what, Transition::ListenerClosed(_))));
}

#[test]
fn s9_every_port_is_asked_to_be_counted_once() {
    let mut truth = Truth::new(START);
    truth.listeners.clear();
    let mut world = World::with(Settings { watch: Watch::Ports(vec![port(80)]), ..settings() }, truth);
    assert!(world.truth.attempts.contains_key(&port(80)));
    world.truth.attempts.clear();
    world.hook();
    world.run_to(1000);
    assert!(world.truth.attempts.is_empty());
}
