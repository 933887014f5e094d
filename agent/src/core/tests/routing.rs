//! E5 and the reasons that rest on it: a drain waits for the cluster.

use super::{
    cluster::{LEAVING, READY, node, routing, with_routing},
    truth::ms,
    world::World,
};
use crate::core::{
    cluster::{ClusterEvent, HealthOutcome, ReadOutcome, ServiceProxy, TrafficPolicy},
    event::{Action, Event},
    journal::Transition,
    settings::{RoutingSettings, Settings},
    verdict::{Condition, Reason, RouteState},
};

fn fenced() -> Settings {
    Settings { routing: Some(RoutingSettings { fence: true, ..routing() }), ..with_routing() }
}

/// The hook was called, and the pod withdrawn 100 ms later.
pub(super) fn withdrawn(settings: Settings) -> World {
    let mut world = World::at_rest(settings);
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world
}

#[test]
fn e5_a_pod_that_is_routed_to_holds_the_drain_to_its_bound() {
    let mut world = World::at_rest(with_routing());
    world.hook();
    world.syncs(59_000);
    assert_eq!(world.holding(), [Condition::Routing]);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000));
    assert_eq!(answer.verdict.holding, [Condition::Routing]);
}

#[test]
fn e5_a_drain_ends_when_every_node_has_synced_after_the_withdrawal() {
    let mut world = withdrawn(with_routing());
    world.syncs(10_000);
    let answer = world.answers.first().expect("an end by evidence").clone();
    assert_eq!(answer.reason(), Reason::Synced);
    // The withdrawal at 100, and watchLag: the base comes at 2100, and two edges by 3100.
    assert_eq!(answer.at_ms(), 3100, "{:?}", answer.verdict);
    assert_eq!(answer.verdict.assumes, ["watchLag<=2s"]);
    assert!(answer.verdict.not_observed.is_empty(), "{:?}", answer.verdict.not_observed);
    let told = answer.verdict.routing.clone().expect("what was known of the cluster");
    assert_eq!(
        told.services.iter().map(|route| (route.name.as_str(), route.state, route.since_ms)).collect::<Vec<_>>(),
        [("web", RouteState::Withdrawn, Some(100))]
    );
    assert_eq!((told.nodes.total, told.nodes.assumed), (2, 2));
    assert_eq!(told.evidence.iter().map(|evidence| evidence.node.as_str()).collect::<Vec<_>>(), ["here", "there"]);
    assert_eq!(answer.verdict.held_by.routing_ms, 3100);
}

#[test]
fn the_record_says_once_that_the_nodes_have_settled_and_that_a_read_agrees() {
    let told = |world: &World, wanted: &Transition| world.journal().iter().filter(|what| *what == wanted).count();
    let mut world = withdrawn(with_routing());
    world.cluster.reads = Some(ReadOutcome::Failed("refused".to_owned()));
    world.syncs(2600);
    assert_eq!(told(&world, &Transition::NodesSettled), 0);
    world.connect(80);
    world.run_to(3100);
    world.health("here", true);
    assert_eq!(told(&world, &Transition::NodesSettled), 0, "one of two");
    world.health("there", true);
    assert_eq!(told(&world, &Transition::NodesSettled), 1);
    world.syncs(6000);
    assert_eq!(told(&world, &Transition::NodesSettled), 1);
    assert_eq!(told(&world, &Transition::ReadAgrees), 0);
    world.cluster.reads = None;
    world.run_out();
    assert_eq!(told(&world, &Transition::ReadAgrees), 1);

    // What is known of nodes that have settled may still become better.
    let mut world = withdrawn(with_routing());
    for at in [100, 7200] {
        world.traffic(300, at);
        world.run_to(at);
        world.health("here", false);
        world.health("there", false);
    }
    assert_eq!((world.core.node_tally().waited, told(&world, &Transition::NodesSettled)), (2, 1));
    for half in 15..=20 {
        world.traffic(100, half * 500);
        world.health("here", true);
        world.health("there", true);
    }
    assert_eq!((world.core.node_tally().assumed, told(&world, &Transition::NodesSettled)), (2, 1));
}

#[test]
fn e5_a_fence_that_never_answered_has_nobody_ask_too_many_nodes() {
    let too_many = RoutingSettings { fence: true, max_nodes: 1, ..routing() };
    let mut world = withdrawn(Settings { routing: Some(too_many), ..with_routing() });
    world.say(ClusterEvent::FenceFails("connection refused".to_owned()));
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Unverified, 7100));
}

#[test]
fn e5_one_node_that_has_not_synced_holds_the_drain() {
    let mut world = withdrawn(with_routing());
    for _ in 0..100 {
        let next = world.now + ms(500);
        world.run(next);
        world.health("here", true);
        world.health("there", false);
    }
    // C7: it answers, and that is all: it was waited for.
    let answer = world.answers.first().expect("an end").clone();
    assert_eq!(answer.reason(), Reason::Unverified);
    assert_eq!(answer.verdict.not_observed.iter().map(|thing| thing.what.as_str()).collect::<Vec<_>>(), ["sync"]);
    assert!(answer.at_ms() >= 7100, "C7 waits watchLag, twice syncTime and minSync: {}", answer.at_ms());
    let mut world = withdrawn(with_routing());
    world.health("there", true);
    world.syncs(2_000);
    while world.now_ms() < 59_000 {
        let next = world.now + ms(500);
        world.run(next);
        world.health("here", true);
        world.report("there", HealthOutcome::TimedOut);
    }
    assert_eq!(world.holding(), [Condition::Routing]);
    assert_eq!(world.run_out().reason(), Reason::Bound);
}

#[test]
fn e5_the_fence_ends_a_drain_as_routed_away() {
    let mut world = withdrawn(fenced());
    world.run_to(1500);
    world.fence_shows();
    assert!(world.answers.is_empty());
    world.run_to(2500);
    assert_eq!(world.answers.len(), 0, "C11: its connection is to stand at the change and watchLag");
    world.fence_shows();
    world.run_to(2600);
    let answer = world.answers.first().expect("an end by evidence").clone();
    assert_eq!(answer.reason(), Reason::RoutedAway);
    assert_eq!(answer.verdict.assumes, ["firstList<=2s"]);
    assert!(answer.verdict.not_observed.is_empty(), "{:?}", answer.verdict.not_observed);
}

#[test]
fn c10_a_policy_that_changed_before_the_first_list_of_slices_is_behind_no_marker() {
    let mut world = World::at_rest(fenced());
    world.cluster.silent = true;
    world.hook();
    let [local, cluster] = [TrafficPolicy::Local, TrafficPolicy::Cluster].map(|policy| world.cluster.service(policy));
    world.say(ClusterEvent::ServicesListed(vec![local]));
    world.say(ClusterEvent::ServiceWritten(cluster.clone()));
    world.cluster.services.insert(cluster.name.clone(), cluster);
    world.cluster.silent = false;
    world.run_to(100);
    let slice = world.write_slice(&[(1, LEAVING), (2, READY)]);
    let nodes = world.cluster.nodes.clone();
    world.say(ClusterEvent::NodesListed(nodes));
    world.say(ClusterEvent::SlicesListed(vec![slice]));
    world.run_to(4000);
    let asked = world.asked.iter().filter(|(_, action)| matches!(action, Action::AskFence(_)));
    assert_eq!(asked.map(|(at, _)| *at).collect::<Vec<_>>(), [2100], "before that a node may not have the policy");
    world.fence_shows();
    world.run_to(5000);
    let answer = world.answers.first().expect("an end by evidence").clone();
    assert_eq!(answer.reason(), Reason::RoutedAway);
    assert_eq!(answer.verdict.assumes, ["firstList<=2s", "watchLag<=2s"]);
}

#[test]
fn e5_what_is_not_observed_makes_it_unverified() {
    let mut world = World::at_rest(fenced());
    world.hook();
    world.say(ClusterEvent::ServicesUnreadable("forbidden".to_owned()));
    world.run_to(100);
    world.slice(&[(2, READY)]);
    world.run_to(2500);
    world.fence_shows();
    world.run_to(2600);
    let answer = world.answers.first().expect("an end").clone();
    assert_eq!(answer.reason(), Reason::Unverified);
    assert_eq!(answer.verdict.not_observed.first().map(|thing| thing.what.as_str()), Some("policy"));
}

#[test]
fn e5_quiet_still_holds_after_every_confirmation() {
    let mut world = withdrawn(fenced());
    world.run_to(2400);
    world.syn(80);
    world.run_to(2500);
    world.fence_shows();
    world.run_to(4000);
    assert_eq!(world.holding(), [Condition::Quiet]);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 4400));
}

#[test]
fn e5_too_many_nodes_are_neither_awaited_nor_claimed() {
    let mut world =
        withdrawn(Settings { routing: Some(RoutingSettings { max_nodes: 1, ..routing() }), ..with_routing() });
    let answer = world.run_out().clone();
    assert_eq!(
        (answer.reason(), answer.at_ms()),
        (Reason::Unverified, 7100),
        "waited for as by C7, from the change on"
    );
    assert!(answer.verdict.not_observed.iter().any(|thing| thing.what == "nodes"), "{:?}", answer.verdict);
}

#[test]
fn e5_a_node_that_joins_is_awaited() {
    let mut world = withdrawn(fenced());
    world.say(ClusterEvent::NodeAdded(node("new")));
    world.run_to(2500);
    world.fence_shows();
    world.run_to(10_000);
    assert_eq!(world.holding(), [Condition::Routing]);
}

#[test]
fn e5_an_endpoint_that_comes_back_holds_the_drain_again() {
    let mut world = withdrawn(fenced());
    world.run_to(2500);
    world.syn(80);
    world.fence_shows();
    world.run_to(2600);
    world.slice(&[(1, READY), (2, READY)]);
    world.run_to(20_000);
    assert_eq!(world.holding(), [Condition::Routing]);
    assert_eq!(world.answers.len(), 0);
}

#[test]
fn whether_the_pod_is_routed_to_is_told_for_the_drain_under_way() {
    let mut world = World::at_rest(with_routing());
    assert!(!world.core.is_unrouted(), "nobody knows at rest");
    world.hook();
    world.run_to(100);
    assert!(!world.core.is_unrouted());
    world.slice(&[(1, LEAVING), (2, READY)]);
    assert!(world.core.is_unrouted());
    world.run_to(200);
    world.slice(&[(1, LEAVING)]);
    assert!(!world.core.is_unrouted(), "the last endpoint that serves is a fallback");
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_out();
    assert!(!world.core.is_unrouted());
}

#[test]
fn e5_what_an_earlier_watch_says_is_nothing_to_a_later_drain() {
    let mut world = withdrawn(fenced());
    let earlier = world.cluster.observed.expect("an observation");
    world.run_to(2500);
    world.fence_shows();
    world.run_to(2600);
    assert_eq!(world.answers.len(), 1);
    assert_eq!(world.cluster.observed, None, "the watch ends with the drain");
    world.cluster.silent = true;
    world.hook();
    let slices = world.cluster.slices.values().cloned().collect();
    world.handle(Event::Cluster(earlier, std::sync::Arc::new(ClusterEvent::SlicesListed(slices))));
    world.run_to(20_000);
    assert!(!world.asked.iter().any(|(at, action)| *at > 2600 && matches!(action, Action::AskFence(_))), "W7");
    assert_eq!(world.holding(), [Condition::Routing]);
}

/// Not a kube-proxy that has only just started: it goes on so.
fn answers_without_a_status(world: &mut World, name: &str) {
    for at in [200, 2300] {
        world.run_to(at);
        world.report(name, HealthOutcome::NoStatus("it answers as Cilium does".to_owned()));
    }
}

#[test]
fn the_nodes_are_counted_by_what_they_have_shown() {
    let mut world = withdrawn(with_routing());
    let tally = world.core.node_tally();
    assert_eq!((tally.pending, tally.assumed), (2, 0));
    world.syncs(2600);
    world.connect(80);
    world.syncs(3100);
    let tally = world.core.node_tally();
    assert_eq!((tally.pending, tally.assumed), (0, 2));

    let mut world = withdrawn(with_routing());
    world.health("here", false);
    answers_without_a_status(&mut world, "there");
    let tally = world.core.node_tally();
    assert_eq!((tally.pending, tally.unobservable), (1, 1));
    world.run_to(7000);
    world.connect(80).run_to(7200);
    world.health("here", false);
    let tally = world.core.node_tally();
    assert_eq!((tally.pending, tally.waited, tally.unobservable), (0, 1, 1));
    let told = world.run_out().verdict.routing.clone().expect("routing").nodes;
    assert_eq!((told.total, told.pending, told.waited, told.unobservable), (2, 0, 1, 1));
}

#[test]
fn e5_a_node_that_cannot_be_observed_is_waited_for_as_one_that_shows_nothing() {
    let mut world = withdrawn(with_routing());
    answers_without_a_status(&mut world, "there");
    for half in 5..=12 {
        world.run_to(half * 500);
        world.health("here", true);
    }
    world.run_to(7099);
    assert!(world.answers.is_empty());
    world.run_to(7200);
    assert_eq!(world.reasons(), [Reason::Unverified]);
}

#[test]
fn e5_a_node_that_has_gone_is_not_one_of_too_many() {
    let mut world =
        withdrawn(Settings { routing: Some(RoutingSettings { max_nodes: 2, ..routing() }), ..with_routing() });
    world.cluster.reads = Some(ReadOutcome::Forbidden("forbidden".to_owned()));
    world.say(ClusterEvent::NodeRemoved(node("there").name));
    world.say(ClusterEvent::NodeAdded(node("new")));
    world.run_to(10_000);
    assert_eq!(world.answers.len(), 0, "there are two nodes, and both are awaited");
    assert_eq!(world.holding(), [Condition::Routing]);
}

#[test]
fn w8_without_a_node_that_was_asked_nothing_is_claimed() {
    let accept = std::collections::BTreeSet::from(["headless/web".to_owned()]);
    let accepting = RoutingSettings { accept, fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(accepting), ..with_routing() });
    for slice in world.cluster.slices.values_mut() {
        slice.proxy = ServiceProxy::Headless;
    }
    world.hook();
    let answer = world.run_out();
    assert_eq!(answer.reason(), Reason::Unverified, "the pod is listed ready all the while");
    assert_eq!(answer.unseen(), ["nodes"]);
}
