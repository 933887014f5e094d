//! C4, C9, C12, C13 with a fence: what it says, and what becomes of a drain when it says nothing.

use super::{
    cluster::{LEAVING, READY, node, routing, with_routing},
    truth::ms,
    world::{World, at},
};
use crate::core::{
    cluster::{ClusterEvent, HealthOutcome, NodeName, ReadOutcome, Snapshot},
    confirm::FenceReach,
    drain::Core,
    event::{Action, Event},
    journal::Transition,
    listener::Family,
    settings::{RoutingSettings, Settings},
    verdict::{Condition, Reason},
};

fn fenced() -> Settings {
    Settings { routing: Some(RoutingSettings { fence: true, ..routing() }), ..with_routing() }
}

fn asks(world: &World) -> Vec<u64> {
    let asks = world.asked.iter().filter(|(_, action)| matches!(action, Action::AskFence(_)));
    asks.map(|(at, _)| *at).collect()
}

/// The hook was called, the agent may not list nodes, and the pod was withdrawn 100 ms later.
fn without_nodes() -> World {
    let mut world = World::at_rest(fenced());
    world.cluster.silent = true;
    world.hook();
    let (services, slices) = (world.cluster.services.clone(), world.cluster.slices.clone());
    world.say(ClusterEvent::ServicesListed(services.into_values().collect()));
    world.say(ClusterEvent::SlicesListed(slices.into_values().collect()));
    world.say(ClusterEvent::NodesUnreadable("forbidden".to_owned()));
    world.cluster.silent = false;
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    let shown = Snapshot { nodes: None, ..world.cluster.snapshot() };
    world.cluster.reads = Some(ReadOutcome::Shows(shown));
    world
}

/// The hook was called, the pod was withdrawn 100 ms later, and the fence answers.
fn answered() -> World {
    let mut world = World::at_rest(fenced());
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.say(ClusterEvent::FenceAnswers);
    world
}

fn fence_lists(world: &mut World, as_of: u64) {
    let nodes = ["here", "there"].map(node).to_vec();
    world.say(ClusterEvent::FenceNodes { nodes, as_of: at(as_of) });
}

fn fence_finds(world: &mut World, name: &str, reach: FenceReach) {
    world.say(ClusterEvent::FenceReach { node: NodeName(name.to_owned()), family: Family::V4, reach });
}

fn named(world: &World) -> Vec<String> {
    world.answers[0].verdict.not_observed.iter().map(|entry| entry.what.clone()).collect()
}

#[test]
fn c4_the_fence_is_asked_when_nobody_routes_to_the_pod_any_more() {
    let mut world = World::at_rest(fenced());
    world.hook();
    world.run_to(100);
    assert!(asks(&world).is_empty(), "a withdrawal is still to come, and would void what it shows");
    world.slice(&[(1, LEAVING), (2, READY)]);
    assert_eq!(asks(&world), [100]);
}

#[test]
fn c9_the_fence_s_nodes_stand_in_for_a_list_that_cannot_be_had() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut world, 150);
    world.run_to(2300);
    world.fence_shows();
    world.run_to(9000);
    assert_eq!(world.holding(), [Condition::Routing], "a node may have joined since 150");
    fence_lists(&mut world, 2099);
    world.run_to(9100);
    assert!(world.answers.is_empty(), "and by 2099");
    fence_lists(&mut world, 2100);
    world.run_to(9200);
    assert_eq!(world.answers[0].reason(), Reason::RoutedAway);
    assert_eq!(named(&world), [""; 0]);
    assert_eq!(world.answers[0].verdict.routing.as_ref().map(|routing| routing.nodes.confirmed), Some(2));
}

#[test]
fn c9_a_fence_that_lists_the_nodes_no_more_is_named_for_it() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut world, 150);
    world.run_to(2300);
    world.fence_shows();
    assert_eq!(world.run_out().reason(), Reason::Bound);
    assert_eq!(named(&world), ["nodes"]);

    let mut unread = without_nodes();
    unread.cluster.reads = Some(ReadOutcome::Failed("refused".to_owned()));
    unread.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut unread, 150);
    unread.run_to(2300);
    unread.fence_shows();
    fence_lists(&mut unread, 2300);
    assert_eq!(unread.run_out().reason(), Reason::Bound);
    assert_eq!(named(&unread), ["api"]);
}

#[test]
fn c9_nothing_more_is_waited_for_than_what_the_fence_has_shown() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut world, 150);
    world.run_to(2300);
    world.fence_shows();
    assert_eq!(world.core.node_tally().confirmed, 2);
    fence_lists(&mut world, 2300);
    world.run_to(2500);
    assert_eq!(world.reasons(), [Reason::RoutedAway]);
}

#[test]
fn c9_a_node_that_joins_by_the_fence_s_word_is_awaited() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut world, 150);
    world.run_to(2300);
    world.fence_shows();
    let nodes = ["here", "joined", "there"].map(node).to_vec();
    world.say(ClusterEvent::FenceNodes { nodes, as_of: at(2200) });
    let answer = world.run_out();
    assert_eq!(answer.reason(), Reason::Bound);
}

#[test]
fn the_record_says_what_becomes_of_a_fence_and_does_not_repeat_it() {
    let mut world = answered();
    world.say(ClusterEvent::FenceAnswers);
    for why in ["refused", "refused", "no such name"] {
        world.say(ClusterEvent::FenceFails(why.to_owned()));
    }
    world.say(ClusterEvent::FenceAnswers);
    let of_fence = |what: &Transition| matches!(what, Transition::FenceAnswers | Transition::FenceFails(_));
    let told: Vec<_> = world.journal().into_iter().filter(of_fence).collect();
    let fails = |why: &str| Transition::FenceFails(why.to_owned());
    assert_eq!(told, [Transition::FenceAnswers, fails("refused"), fails("no such name"), Transition::FenceAnswers]);
}

#[test]
fn c12_a_fence_that_has_answered_and_dies_is_awaited_to_the_bound_and_named() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    world.run_to(200);
    world.say(ClusterEvent::FenceFails("connection refused".to_owned()));
    let answer = world.run_out().clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000));
    assert_eq!(named(&world), ["fence", "nodes"]);
    let told = answer.verdict.routing.as_ref().and_then(|routing| routing.fence.clone()).expect("a fence");
    assert_eq!((told.answers, told.why.as_deref()), (false, Some("connection refused")));
}

#[test]
fn c12_a_fence_that_never_answered_is_named_and_waited_for_as_a_silent_node_is() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceFails("no such name".to_owned()));
    world.run_to(7099);
    assert!(world.answers.is_empty());
    world.run_to(9000);
    assert_eq!(world.answers[0].reason(), Reason::Unverified);
    assert_eq!(named(&world), ["fence", "nodes"]);
}

#[test]
fn c12_a_fence_that_never_answered_is_named_where_nodes_have_not_shown_what_it_would_have() {
    let mut world = World::at_rest(fenced());
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.say(ClusterEvent::FenceFails("no such name".to_owned()));
    world.syncs(1000);
    let answer = world.run_out();
    let told = answer.verdict.routing.clone().expect("routing").nodes;
    assert_eq!((answer.reason(), told.total, told.pending), (Reason::Bound, 2, 2));
    assert_eq!(named(&world), ["fence", "node", "node"]);
}

#[test]
fn c12_a_fence_that_answered_in_an_earlier_drain_is_awaited_in_this_one() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    world.run_out();
    let ended = world.now + ms(1000);
    world.run(ended);
    world.cluster.silent = true;
    world.hook();
    let (services, slices) = (world.cluster.services.clone(), world.cluster.slices.clone());
    world.say(ClusterEvent::ServicesListed(services.into_values().collect()));
    world.say(ClusterEvent::SlicesListed(slices.into_values().collect()));
    world.say(ClusterEvent::NodesUnreadable("forbidden".to_owned()));
    world.cluster.silent = false;
    world.say(ClusterEvent::FenceFails("connection refused".to_owned()));
    let answer = world.run_out();
    assert_eq!(answer.reason(), Reason::Bound);
}

#[test]
fn c13_while_the_fence_answers_what_is_weaker_waits_for_it() {
    let synced = |fails: bool| {
        let mut world = World::at_rest(fenced());
        world.hook();
        world.run_to(100);
        world.slice(&[(1, LEAVING), (2, READY)]);
        world.say(ClusterEvent::FenceAnswers);
        for name in ["here", "there"] {
            fence_finds(&mut world, name, FenceReach::Awaited);
        }
        if fails {
            world.say(ClusterEvent::FenceFails("gone".to_owned()));
        }
        world.syncs(5000);
        world
    };
    let without = synced(true);
    assert_eq!(without.answers[0].reason(), Reason::Synced, "by what the nodes say themselves, at once");
    assert_eq!(named(&without), [""; 0]);

    let mut late = synced(false);
    assert!(late.answers.is_empty());
    late.fence_shows();
    late.run_to(5100);
    assert_eq!(late.answers[0].reason(), Reason::RoutedAway);

    let mut never = synced(false);
    never.syncs(20_000);
    assert_eq!(never.answers[0].reason(), Reason::Synced);
    // Both were confirmed by 3100; for as long again as a node that shows nothing is waited for.
    assert!((10_000..11_000).contains(&never.answers[0].at_ms()), "{}", never.answers[0].at_ms());
}

#[test]
fn c13_nodes_that_show_nothing_wait_for_a_fence_that_answers() {
    let mut world = answered();
    for at in [100, 7200] {
        world.run_to(at);
        world.health("here", false);
        world.health("there", false);
    }
    assert_eq!(world.core.node_tally().waited, 2);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Unverified, 14_200));
    assert_eq!(named(&world), ["sync", "sync"]);
}

#[test]
fn c12_a_node_that_only_the_fence_reaches_is_pending_for_as_long_as_the_fence_says() {
    let mut world = answered();
    for name in ["here", "there"] {
        fence_finds(&mut world, name, FenceReach::Awaited);
        world.report(name, HealthOutcome::TimedOut);
    }
    world.run_to(30_000);
    assert_eq!(world.holding(), [Condition::Routing], "no node has ever answered us, and they answer the fence");
    let cilium = FenceReach::Unobservable("it answers as Cilium does".to_owned());
    for name in ["here", "there"] {
        fence_finds(&mut world, name, cilium.clone());
    }
    world.run_to(31_000);
    assert_eq!(world.answers[0].reason(), Reason::Unverified);
}

#[test]
fn c12_what_the_fence_cannot_observe_is_named_in_its_words() {
    let mut world = without_nodes();
    world.say(ClusterEvent::FenceAnswers);
    fence_lists(&mut world, 150);
    world.run_to(2300);
    world.fence_shows();
    let nodes = ["here", "other", "there"].map(node).to_vec();
    world.say(ClusterEvent::FenceNodes { nodes, as_of: at(2200) });
    fence_finds(&mut world, "other", FenceReach::Unobservable("it answers as Cilium does".to_owned()));
    world.run_to(7099);
    assert!(world.answers.is_empty(), "it is waited for as a node that shows nothing");
    world.run_to(9000);
    assert_eq!(world.answers[0].reason(), Reason::Unverified);
    let [entry] = world.answers[0].verdict.not_observed.as_slice() else { panic!("one entry") };
    assert_eq!(
        (entry.what.as_str(), entry.name.as_deref(), entry.why.as_str()),
        ("node", Some("other"), "it answers as Cilium does")
    );
}

#[test]
fn c12_a_node_that_the_fence_cannot_observe_and_that_answers_us_is_awaited() {
    let mut world = answered();
    for name in ["here", "there"] {
        world.health(name, false);
        fence_finds(&mut world, name, FenceReach::Unobservable("it does not answer the fence".to_owned()));
    }
    world.run_to(30_000);
    assert_eq!(world.holding(), [Condition::Routing], "its kube-proxy has told us when it last wrote its rules");
    world.syncs(45_000);
    assert_eq!(world.answers[0].reason(), Reason::Synced);
}

/// What the property in `cluster_properties.rs` leaves out, and why it cannot hold there.
#[test]
fn s2_a_restarted_agent_has_never_heard_of_a_node_that_went_before() {
    let ended = |restarts: bool| {
        let mut world = World::at_rest(fenced());
        world.hook();
        world.say(ClusterEvent::NodeAdded(node("new")));
        world.say(ClusterEvent::NodeRemoved(node("new").name));
        if restarts {
            world.core = Core::new(fenced(), world.now);
            world.truth.mend_sensor(world.now);
            world.handle(Event::Clock);
            world.hook();
        }
        world.run_to(100);
        world.slice(&[(1, LEAVING), (2, READY)]);
        world.run_to(2500);
        world.fence_shows();
        world.run_out().reason()
    };
    assert_eq!((ended(false), ended(true)), (Reason::Unverified, Reason::RoutedAway));
}
