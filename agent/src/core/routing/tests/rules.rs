//! W1 to W5 and W7, each by name.

use std::collections::BTreeSet;

use super::{
    super::State,
    scene::{
        Conditions, DEAD, FAR, LEAVING, NEAR, POD, READY, Scene, UNREADY, address, endpoint, local_service, port, slice,
    },
};
use crate::core::{
    clock::Monotonic,
    cluster::{Endpoint, Service, ServiceProxy, Slice, SlicePort, TrafficPolicy, Transport},
    listener::Family,
};

#[test]
fn w1_an_endpoint_is_the_pods_if_any_of_its_addresses_is() {
    let mut scene = Scene::listed(&[]);
    let other = endpoint(FAR, READY);
    let pods = Endpoint { addresses: BTreeSet::from([address(FAR), address(POD)]), ..other.clone() };
    scene.deliver(&slice("a", 90, vec![other]));
    assert_eq!(scene.state(), None);
    scene.deliver(&slice("a", 91, vec![pods]));
    assert_eq!(scene.state(), Some(State::Routed));
}

#[test]
fn w1_ready_in_any_slice_means_ready() {
    let scene = Scene::listed(&[("a", &[(POD, DEAD), (FAR, READY)]), ("b", &[(POD, READY)])]);
    assert_eq!(scene.state(), Some(State::Routed));
}

#[test]
fn w2_absent_conditions_mean_ready_serving_and_not_terminating() {
    let absent = |who, terminating, ready| Endpoint { ready, serving: None, terminating, ..endpoint(who, UNREADY) };
    let mut scene = Scene::listed(&[]);
    scene.deliver(&slice("a", 90, vec![absent(POD, None, None)]));
    assert_eq!(scene.state(), Some(State::Routed), "an absent ready means true");
    scene.deliver(&slice("a", 91, vec![absent(POD, Some(true), Some(false))]));
    assert_eq!(scene.state(), Some(State::Routed), "an absent serving means true: the fallback");
    scene.deliver(&slice("a", 92, vec![absent(POD, None, Some(false))]));
    assert!(scene.is_withdrawn_now(), "an absent terminating means false: no fallback");
    scene.deliver(&slice("a", 93, vec![absent(POD, Some(true), Some(false)), absent(FAR, None, None)]));
    assert!(scene.is_withdrawn(), "a peer with an absent ready is ready");
}

#[test]
fn w3_ready_is_routed_whoever_else_is_and_while_it_terminates_too() {
    let publish_not_ready: Conditions = [true, false, true];
    for conditions in [READY, publish_not_ready] {
        let mut scene = Scene::listed(&[("a", &[(POD, conditions), (FAR, READY), (NEAR, READY)])]);
        assert_eq!(scene.state(), Some(State::Routed));
        assert!(scene.write("a", &[(FAR, READY), (NEAR, READY)]));
        assert!(scene.is_withdrawn_now());
    }
}

#[test]
fn w4_a_terminating_pod_is_the_fallback_unless_another_is_ready() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    assert!(scene.write("a", &[(POD, LEAVING)]));
    assert_eq!(scene.state(), Some(State::Routed), "the last one");
    assert!(scene.write("a", &[(POD, LEAVING), (FAR, LEAVING)]));
    assert_eq!(scene.state(), Some(State::Routed), "the other one leaves too");
    assert!(scene.write("a", &[(POD, LEAVING), (FAR, READY)]));
    assert!(scene.is_withdrawn_now());
    assert!(scene.write("a", &[(POD, LEAVING), (FAR, UNREADY)]));
    assert_eq!(scene.state(), Some(State::Routed), "taken back");
    assert!(scene.write("a", &[(POD, DEAD), (FAR, UNREADY)]));
    assert!(scene.is_withdrawn_now(), "not serving is no fallback");
}

#[test]
fn w4_not_terminating_is_no_fallback() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    scene.write("a", &[(POD, [false, true, false])]);
    assert!(scene.is_withdrawn_now());
}

/// V1 of the search: the node may take the copy that is not ready.
#[test]
fn w4_every_slice_that_lists_the_other_must_list_it_ready() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, UNREADY)]), ("b", &[(FAR, READY)])]);
    assert_eq!(scene.state(), Some(State::Routed));
    assert!(scene.write("a", &[(POD, LEAVING)]));
    assert!(scene.is_withdrawn_now());
}

#[test]
fn w4_two_entries_of_one_address_in_one_slice_must_both_be_ready() {
    for entries in [[READY, UNREADY], [UNREADY, READY]] {
        let [first, second] = entries;
        let scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, first), (FAR, second)])]);
        assert_eq!(scene.state(), Some(State::Routed));
    }
}

#[test]
fn w4_is_asked_per_service_port_because_new_pods_may_lack_a_named_one() {
    let mut scene = Scene::listed(&[]);
    let old = slice("a", 90, vec![endpoint(POD, LEAVING)]);
    let old = Slice { ports: vec![port("http", 8080), port("admin", 9000)], ..old };
    scene.deliver(&old);
    scene.write("b", &[(FAR, READY)]);
    assert!(scene.is_withdrawn());
    assert_eq!(scene.state_of("admin"), Some(State::Routed));
}

#[test]
fn w4_under_local_this_nodes_endpoints_are_asked_as_well() {
    let far = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (FAR, READY)])]);
    assert_eq!(far.state(), Some(State::Routed));
    let near = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (NEAR, READY)])]);
    assert!(near.is_withdrawn_now());
    let internal = Service { internal: TrafficPolicy::Local, ..super::scene::service("web") };
    let far = Scene::listed_with(internal, &[("a", &[(POD, LEAVING), (FAR, READY)])]);
    assert_eq!(far.state(), Some(State::Routed));
}

#[test]
fn w4_counts_others_as_kube_proxy_does() {
    let leaving = || endpoint(POD, LEAVING);
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)])]);
    let foreign = Slice { proxy: ServiceProxy::Foreign, ..slice("b", 90, vec![endpoint(FAR, READY)]) };
    scene.deliver(&foreign);
    assert_eq!(scene.state(), Some(State::Routed), "another proxy's slice");
    let no_port = Slice { ports: vec![], ..slice("b", 91, vec![endpoint(FAR, READY)]) };
    scene.deliver(&no_port);
    assert_eq!(scene.state(), Some(State::Routed), "a slice without a port that is set");
    let udp = SlicePort { transport: Transport::Udp, ..port("http", 8080) };
    let udp = Slice { ports: vec![udp], ..slice("b", 92, vec![endpoint(FAR, READY)]) };
    scene.deliver(&udp);
    assert_eq!(scene.state(), Some(State::Routed), "another protocol");
    let wrong_family = Endpoint { address: "fd00::2".parse().unwrap(), ..endpoint(FAR, READY) };
    scene.deliver(&slice("a", 93, vec![leaving(), wrong_family]));
    assert_eq!(scene.state(), Some(State::Routed), "an address of the wrong family");
    scene.deliver(&slice("a", 94, vec![leaving(), endpoint(FAR, READY)]));
    assert!(scene.is_withdrawn_now());
}

#[test]
fn w5_withdrawn_since_the_last_relevant_change() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY), (FAR, READY)])]);
    scene.write("a", &[(POD, LEAVING), (FAR, READY)]);
    let since = scene.now;
    assert_eq!(scene.state(), Some(State::Withdrawn { since }));
    assert!(!scene.write("a", &[(POD, DEAD), (FAR, READY)]));
    assert!(!scene.write("a", &[(FAR, READY)]));
    assert_eq!(scene.state(), Some(State::Withdrawn { since }));
    assert_eq!(scene.routing.last_relevant_change(Family::V4), Some(since));
    assert_eq!(scene.routing.last_relevant_change(Family::V6), None);
}

#[test]
fn w7_nothing_is_known_before_the_first_list() {
    let mut scene = Scene::blank();
    scene.routing.services_listed(vec![], Monotonic::from_nanos(1));
    assert!(!scene.write("a", &[(POD, READY)]));
    assert!(!scene.routing.known());
    assert_eq!(scene.state(), None);
}

#[test]
fn w7_a_list_without_the_pod_is_not_a_withdrawal() {
    let mut scene = Scene::listed(&[("a", &[(FAR, READY)])]);
    assert!(!scene.routing.known());
    assert!(!scene.write("a", &[(NEAR, READY)]));
    assert_eq!(scene.routing.last_relevant_change(Family::V4), None);
    assert!(scene.write("a", &[(POD, LEAVING), (NEAR, READY)]));
    assert!(scene.routing.known());
    assert!(scene.is_withdrawn_now());
    assert_eq!(scene.routing.families(), BTreeSet::from([Family::V4]));
}

#[test]
fn w7_a_removal_that_the_watch_saw_is_a_withdrawal() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    assert!(scene.remove("a"));
    assert!(scene.routing.known());
    assert!(scene.is_withdrawn_now());
}

#[test]
fn w7_what_the_first_list_shows_counts_as_changed_then() {
    let scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, READY)])]);
    assert!(scene.is_withdrawn_now());
    assert_eq!(scene.routing.last_relevant_change(Family::V4), Some(scene.now));
    assert_eq!(scene.routing.generation(Family::V4), 1);
}
