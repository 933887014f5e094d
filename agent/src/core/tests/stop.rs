//! S7: when the agent leaves after SIGTERM.

use super::{
    truth::{ms, port},
    world::{World, at, settings},
};
use crate::core::{
    event::{Action, Depth, Event},
    settings::Settings,
    verdict::Reason,
};

#[test]
fn s7_with_no_open_listener_it_leaves_at_once() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.clear(); // not read yet
    world.run_to(500);
    world.handle(Event::Terminate);
    assert_eq!(world.exited, Some(at(500)));
}

#[test]
fn s7_it_stays_while_a_listener_is_open_and_is_gone_within_100_ms() {
    let mut world = World::at_rest(settings());
    world.handle(Event::Terminate);
    world.run_to(5000);
    assert_eq!(world.exited, None);
    world.truth.listeners.remove(&port(80));
    world.run_to(6000);
    assert_eq!(world.exited, None, "443 is open");
    world.truth.listeners.clear();
    world.run_to(7000);
    assert!(world.exited.unwrap() <= at(6050), "{:?}", world.exited);
}

#[test]
fn s7_without_a_drain_it_stays_at_most_to_the_bound_of_one_called_with_the_signal() {
    let mut world = World::at_rest(settings());
    world.run_to(1000);
    world.handle(Event::Terminate);
    world.run_to(100_000);
    assert_eq!(world.exited, Some(at(31_000)));
}

#[test]
fn s7_a_drain_keeps_it_whatever_listens() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.truth.listeners.clear();
    world.run_to(500).syn(80);
    world.handle(Event::Terminate);
    world.run_to(10_000);
    let answered = world.answers.first().unwrap();
    assert_eq!((answered.at, world.exited), (at(2500), Some(at(2500))), "the answer, then the end");
}

#[test]
fn s7_term_in_a_drain_leaves_the_answer_as_it_is() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(700).connect(80);
    world.run_to(1000);
    world.handle(Event::Terminate);
    world.handle(Event::Terminate);
    let answered = world.run_out().clone();
    assert_eq!((answered.at, answered.reason()), (at(2700), Reason::Quiet));
    assert_eq!(world.exited, Some(at(30_000)), "the listener never closed: its drain's bound + stopReserve");
}

#[test]
fn s7_term_shortly_after_a_drain_keeps_that_drains_limit() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(5000);
    world.handle(Event::Terminate);
    world.run_to(100_000);
    assert_eq!((world.answers.len(), world.exited), (1, Some(at(30_000))));
}

#[test]
fn s7_term_long_after_a_drain_counts_from_the_signal() {
    // The hook of a container that was restarted, say.
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(200_000);
    world.handle(Event::Terminate);
    assert_eq!(world.exited, None);
    world.run_to(300_000);
    assert_eq!(world.exited, Some(at(230_000)));
}

#[test]
fn s7_term_at_the_end_of_a_drains_limit_counts_from_the_signal_too() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(30_000);
    world.handle(Event::Terminate);
    assert_eq!(world.exited, None);
    world.run_to(100_000);
    assert_eq!(world.exited, Some(at(60_000)));
}

#[test]
fn s7_after_a_drain_one_reading_without_a_listener_is_enough() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(3000);
    world.handle(Event::Terminate);
    world.run_to(4000);
    world.truth.listeners.clear();
    world.run_to(5000);
    let since: Vec<_> = world.readings.iter().map(|(time, _)| *time).filter(|time| *time > at(4000)).collect();
    assert_eq!(since, [world.exited.unwrap()]);
}

#[test]
fn s7_a_hook_that_is_called_after_the_signal_gets_its_drain() {
    let mut world = World::at_rest(settings());
    world.handle(Event::Terminate);
    world.run_to(4000);
    world.hook();
    world.traffic(100, 6000);
    world.truth.listeners.clear();
    world.run_to(100_000);
    let answered = world.answers.first().unwrap();
    assert_eq!((answered.at, answered.reason(), world.exited), (at(8000), Reason::Quiet, Some(at(8000))));
    let mut world = World::at_rest(settings());
    world.handle(Event::Terminate);
    world.run_to(4000);
    world.hook();
    world.traffic(100, 50_000);
    assert_eq!(
        (world.answers[0].at, world.exited),
        (at(24_000), Some(at(34_000))),
        "bound + stopReserve of that drain"
    );
}

#[test]
fn s7_without_reserve_every_caller_is_answered_before_the_end() {
    let mut world = World::at_rest(Settings { stop_reserve: ms(0), ..settings() });
    world.hook();
    world.handle(Event::Terminate);
    world.traffic(100, 30_000);
    assert_eq!((world.answers[0].at, world.exited), (at(20_000), Some(at(20_000))));
    assert_eq!(world.core.poll_timeout(), None, "nothing is due after the end");
}

#[test]
fn s7_a_socket_table_that_cannot_be_read_keeps_nobody() {
    let mut world = World::at_rest(settings());
    world.truth.sockets_broken = Some("no sock_diag".to_owned());
    world.handle(Event::Terminate);
    assert_eq!(world.exited, Some(at(0)));
}

#[test]
fn s7_a_reading_that_is_under_way_at_the_signal_is_followed_by_another() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.clear();
    let due = world.core.poll_timeout().unwrap();
    world.core.handle(Event::Clock, due);
    assert!(matches!(world.core.poll(), Some(Action::Read(_))));
    let before = world.truth.evidence(Depth::Listeners, due);
    world.now = due + ms(1);
    world.core.handle(Event::Terminate, world.now);
    assert!(matches!(world.core.poll(), Some(Action::Read(_))));
    world.handle(Event::Evidence(Box::new(before)));
    assert_eq!(world.exited, None);
    world.look();
    assert_eq!(world.exited, Some(world.now));
}

#[test]
fn s7_what_was_seen_before_the_signal_decides_nothing() {
    let mut world = World::at_rest(settings());
    world.truth.listeners.clear();
    world.look();
    world.run_to(1000);
    world.truth.listeners.insert(port(80), 0); // opened since
    world.handle(Event::Terminate);
    assert_eq!(world.exited, None);
}
