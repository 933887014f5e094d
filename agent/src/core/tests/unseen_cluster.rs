//! What cannot be seen of the cluster is named, and holds a drain for no longer than there is something to wait for.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    cluster::{LEAVING, READY, with_routing},
    truth::ms,
    world::World,
};
use crate::core::{
    cluster::{ClusterEvent, FamilyHealth, HealthOutcome, HealthStatus, NodeName, NodeTime, Slice, SliceName, Wanted},
    listener::Family,
    settings::{RoutingSettings, Settings},
    verdict::{NotObserved, Reason},
};

fn silent(settings: Settings) -> World {
    let mut world = World::at_rest(settings);
    world.cluster.silent = true;
    world.hook();
    world
}

fn names(world: &World) -> Vec<String> {
    let verdict = &world.answers.first().expect("an end").verdict;
    verdict.not_observed.iter().map(|thing| thing.what.clone()).collect()
}

#[test]
fn slices_that_cannot_be_read_end_a_drain_unverified_once_nodes_have_had_their_time_and_it_is_quiet() {
    let mut world = silent(with_routing());
    world.run_to(500);
    world.say(ClusterEvent::SlicesUnreadable("there is no token".to_owned()));
    let mut busy = silent(with_routing());
    busy.run_to(500);
    busy.say(ClusterEvent::SlicesUnreadable("there is no token".to_owned()));
    busy.traffic(200, 8000);
    assert!((9800..11_000).contains(&busy.run_out().at_ms()), "two quiet seconds after the last SYN");
    let answer = world.run_out().clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Unverified, 7000), "as long as C7 waits for a node");
    assert!(names(&world).contains(&"api".to_owned()), "{:?}", names(&world));
}

#[test]
fn evidence_from_before_slices_were_known_to_be_unreadable_ends_no_drain() {
    let mut world = silent(with_routing());
    world.traffic(100, 7400);
    // By 9400 it has been quiet, which was read, and longer than what C7 waits for a node.
    world.run_to(9450);
    world.syn(80);
    world.run_to(9500);
    world.say(ClusterEvent::SlicesUnreadable("it did not answer".to_owned()));
    assert!(world.answers.is_empty(), "a SYN has come that nobody has read of");
    assert_eq!(world.run_out().at_ms(), 11_450);
}

#[test]
fn an_api_server_of_which_nothing_is_heard_holds_a_drain_to_its_bound() {
    let mut world = silent(with_routing());
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000));
}

#[test]
fn slices_that_can_be_read_after_all_hold_again() {
    let mut world = silent(with_routing());
    world.say(ClusterEvent::SlicesUnreadable("it did not answer".to_owned()));
    world.run_to(1000);
    world.list();
    let answer = world.run_out().clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000), "the pod is ready in them");
    assert!(!names(&world).contains(&"api".to_owned()));
}

#[test]
fn what_has_been_listed_is_believed_when_it_cannot_be_read_any_more() {
    let mut world = World::at_rest(with_routing());
    world.hook();
    world.run_to(100);
    world.say(ClusterEvent::SlicesUnreadable("forbidden".to_owned()));
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000));
}

#[test]
fn w7_a_pod_that_no_slice_lists_is_waited_for_and_not_called_withdrawn() {
    let mut world = World::at_rest(with_routing());
    world.write_slice(&[(2, READY)]);
    world.hook();
    let answer = world.run_out().clone();
    assert_eq!(answer.reason(), Reason::Unverified);
    // watchLag, twice syncTime, and minSync after the list.
    assert!((7000..7500).contains(&answer.at_ms()), "{}", answer.at_ms());
    assert!(names(&world).contains(&"routing".to_owned()), "{:?}", names(&world));
}

#[test]
fn w7_a_pod_that_is_listed_late_holds() {
    let mut world = World::at_rest(with_routing());
    world.write_slice(&[(2, READY)]);
    world.hook();
    world.run_to(6900);
    world.slice(&[(1, READY), (2, READY)]);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Bound, 60_000));
}

#[test]
fn w8_the_pod_s_own_paths_are_named_unless_they_are_accepted() {
    for (accept, reason, named) in [("", Reason::Unverified, true), ("hostPort/8080", Reason::Synced, false)] {
        let mut routing = with_routing().routing.expect("it is watched");
        routing.accept.insert(accept.to_owned());
        let mut world = World::at_rest(Settings { routing: Some(RoutingSettings { ..routing }), ..with_routing() });
        world.hook();
        let path = NotObserved {
            what: "hostPort".to_owned(),
            name: Some("8080".to_owned()),
            family: None,
            why: "so".to_owned(),
        };
        let unread = NotObserved { what: "pod".to_owned(), name: None, family: None, why: "not read yet".to_owned() };
        world.say(ClusterEvent::PodPaths([unread].into()));
        world.say(ClusterEvent::PodPaths([path].into()));
        world.run_to(100);
        world.slice(&[(1, LEAVING), (2, READY)]);
        world.syncs(10_000);
        let answer = world.answers.first().expect("an end").clone();
        assert_eq!(answer.reason(), reason);
        assert_eq!(names(&world), if named { vec!["hostPort"] } else { vec![] });
    }
}

#[test]
fn a_node_is_asked_until_it_is_confirmed_and_again_after_a_change() {
    let mut world = World::at_rest(with_routing());
    let wanted = |world: &World| world.core.health_wanted(&NodeName("there".to_owned()), world.now);
    assert_eq!(wanted(&world), Wanted::No, "at rest");
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    let since = world.now;
    assert_eq!(wanted(&world), Wanted::Yes { since, due: Some(since + ms(2000)) });
    // Something else holds the drain.
    world.traffic(500, 8000);
    for _ in 0..8 {
        let next = world.now + ms(500);
        world.run(next);
        world.health("there", true);
    }
    assert_eq!(wanted(&world), Wanted::No);
    world.slice(&[(1, READY), (2, READY)]);
    assert!(matches!(wanted(&world), Wanted::Yes { since, .. } if since == world.now));
    assert_eq!(world.core.last_change().1, Some(world.now));
}

/// A dual-stack pod that left the IPv4 slice before the first list, and the IPv6 slice after it.
#[test]
fn w7_a_family_that_no_slice_lists_the_pod_in_is_waited_for_and_named() {
    let six: IpAddr = "fd00::1".parse().unwrap();
    let mut settings = with_routing();
    settings.routing.as_mut().expect("routing").pod.insert(six);
    for dual_stack in [true, false] {
        let mut world = World::at_rest(settings.clone());
        world.cluster.silent = true;
        world.hook();
        let [four, listed, left] = [1, 1, 2].map(|who| world.cluster.slice(&[(who, READY)]));
        let of_six = |slice: Slice| Slice { family: Family::V6, name: SliceName("web-six".to_owned()), ..slice };
        let [mut listed, left] = [listed, left].map(of_six);
        let pod = listed.endpoints.first_mut().expect("the pod");
        (pod.address, pod.addresses) = (six, BTreeSet::from([six]));
        let four = Slice { endpoints: left.endpoints.clone(), ..four };
        let mut slices = vec![listed];
        slices.extend(Some(four).filter(|_| dual_stack));
        world.cluster.slices = slices.iter().map(|slice| (slice.name.clone(), slice.clone())).collect();
        world.cluster.silent = false;
        world.list();
        world.cluster.slices.insert(left.name.clone(), left.clone());
        world.say(ClusterEvent::SliceWritten(left));
        for stamp in 1..40 {
            let next = world.now + ms(500);
            world.run(next);
            let health = Some(FamilyHealth { last_updated: NodeTime(stamp), healthy: true });
            for name in ["here", "there"] {
                world.report(name, HealthOutcome::Status(HealthStatus { v4: health, v6: health }));
            }
        }
        let answer = world.answers.first().expect("an end").clone();
        if dual_stack {
            assert_eq!(answer.reason(), Reason::Unverified);
            assert!(answer.at_ms() >= 7000, "{}", answer.at_ms());
            let named = answer.verdict.not_observed.iter().find(|thing| thing.what == "routing");
            assert_eq!(named.and_then(|thing| thing.family), Some(Family::V4));
        } else {
            assert_eq!(answer.reason(), Reason::Synced, "{:?}", answer.verdict.not_observed);
        }
    }
}
