//! S4 and the phases: what the server in the pod is told, and when.

use super::{
    cluster::{LEAVING, READY, routing, with_routing},
    truth::ms,
    world::World,
};
use crate::core::{
    cluster::TrafficPolicy,
    event::Event,
    journal::Transition,
    phase::{FailAfter, Phase},
    settings::{RoutingSettings, Settings},
    termination::PodRead,
};

fn with(fail_after: FailAfter) -> Settings {
    Settings { fail_after: Some(fail_after), ..with_routing() }
}

#[test]
fn s4_nothing_is_told_before_the_pod_is_known_to_terminate() {
    let guarded = Settings { restart_guard: Some(ms(5000)), ..with(FailAfter::Fixed(ms(0))) };
    let mut world = World::at_rest(guarded);
    world.hook();
    world.run_to(4000);
    assert!(world.cluster.told.is_empty());
    world.handle(Event::Terminate);
    assert_eq!(world.cluster.told, [(4000, Phase::Announce), (4000, Phase::FailReadiness)]);
}

#[test]
fn s4_a_slice_that_lists_the_pod_terminating_is_enough() {
    let guarded = Settings { restart_guard: Some(ms(5000)), ..with(FailAfter::Never) };
    let mut world = World::at_rest(guarded);
    world.hook();
    world.run_to(100);
    assert!(world.cluster.told.is_empty());
    world.slice(&[(1, LEAVING), (2, READY)]);
    assert_eq!(world.cluster.told, [(100, Phase::Announce)]);
}

#[test]
fn s4_what_was_told_to_a_pod_that_is_not_terminating_is_taken_back() {
    let guarded = Settings { restart_guard: Some(ms(5000)), ..with(FailAfter::Fixed(ms(0))) };
    let mut world = World::at_rest(guarded);
    world.cluster.pod = Some(PodRead::Failed("503".to_owned()));
    world.hook();
    world.run_to(5300);
    assert_eq!(world.cluster.told, [(5250, Phase::Announce), (5250, Phase::FailReadiness)], "the guard has passed");
    world.cluster.pod = Some(PodRead::NotTerminating);
    world.run_to(6000);
    assert_eq!(world.cluster.told.last(), Some(&(5500, Phase::TakeBack)));
}

#[test]
fn s4_a_pod_that_was_last_known_not_to_terminate_is_told_nothing_while_nobody_can_say() {
    let guarded = Settings { restart_guard: Some(ms(5000)), ..with(FailAfter::Fixed(ms(0))) };
    let mut world = World::at_rest(guarded);
    world.cluster.pod = Some(PodRead::NotTerminating);
    world.hook();
    world.cluster.pod = Some(PodRead::Failed("503".to_owned()));
    world.run_to(20_000);
    assert!(world.cluster.told.is_empty(), "{:?}", world.cluster.told);
    world.cluster.pod = Some(PodRead::Terminating);
    world.run_to(20_500);
    assert_eq!(world.cluster.told, [(20_250, Phase::Announce), (20_250, Phase::FailReadiness)]);
}

#[test]
fn phases_readiness_fails_once_another_endpoint_takes_over() {
    let mut world = World::at_rest(with(FailAfter::Auto));
    world.hook();
    world.run_to(100);
    assert_eq!(world.cluster.told, [(0, Phase::Announce)]);
    world.slice(&[(1, LEAVING), (2, [false, false, false])]);
    world.run_to(5000);
    assert_eq!(world.cluster.told.len(), 1, "the fallback needs this pod");
    world.slice(&[(1, LEAVING), (2, READY)]);
    assert_eq!(world.cluster.told, [(0, Phase::Announce), (5000, Phase::FailReadiness)]);
}

#[test]
fn phases_under_a_local_policy_it_is_another_endpoint_of_this_node() {
    let mut world = World::at_rest(with(FailAfter::Auto));
    let service = world.cluster.service(TrafficPolicy::Local);
    world.cluster.services.insert(service.name.clone(), service);
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(30_000);
    assert_eq!(world.cluster.told, [(0, Phase::Announce)], "10.0.0.2 is on another node");
}

#[test]
fn phases_a_load_balancer_finds_the_pod_ready_for_its_window() {
    let window = RoutingSettings { load_balancer_window: ms(10_000), ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(window), ..with(FailAfter::Auto) });
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(20_000);
    assert_eq!(world.cluster.told, [(0, Phase::Announce), (10_000, Phase::FailReadiness)]);
}

#[test]
fn phases_never_and_after_a_time() {
    let mut world = World::at_rest(with(FailAfter::Never));
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(30_000);
    assert_eq!(world.cluster.told, [(0, Phase::Announce)]);
    let mut world = World::at_rest(with(FailAfter::Fixed(ms(3000))));
    world.hook();
    world.run_to(30_000);
    assert_eq!(world.cluster.told, [(0, Phase::Announce), (3000, Phase::FailReadiness)]);
}

#[test]
fn phases_a_server_that_cannot_be_told_holds_and_ends_nothing() {
    let mut world = World::at_rest(Settings { routing: None, ..with(FailAfter::Never) });
    world.hook();
    world.handle(Event::Told(Phase::Announce, Err("connection refused".to_owned())));
    assert_eq!(world.run_out().at_ms(), 2000);
    let why = "connection refused".to_owned();
    assert!(world.journal().contains(&Transition::NotTold(Phase::Announce, why)));
}

#[test]
fn phases_without_a_server_to_tell_nothing_is_told() {
    let mut world = World::at_rest(with_routing());
    world.hook();
    world.run_to(30_000);
    assert!(world.cluster.told.is_empty());
}
