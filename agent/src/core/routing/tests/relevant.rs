//! The relevant change: one test for each trace that broke a simpler rule, and for what a rolling update needs.

use super::{
    super::State,
    scene::{DEAD, FAR, LEAVING, NEAR, POD, READY, Scene, UNREADY, endpoint, local_service, port, slice},
};
use crate::core::{
    cluster::{ServiceName, ServiceProxy, Slice},
    listener::Family,
};

const THIRD: u8 = 21;

/// The node has the old `a`, and may take its copy.
#[test]
fn relevant_v3_a_copy_that_some_slice_listed_not_ready_is_no_witness() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING), (FAR, UNREADY)]), ("b", &[(FAR, READY)])]);
    assert!(scene.write("a", &[(POD, LEAVING)]), "the witness was ready in b throughout, and not in a");
    assert!(!scene.write("a", &[(POD, DEAD)]));
    assert!(scene.write("a", &[(POD, LEAVING), (FAR, UNREADY)]), "and again, later");
}

/// The node has not heard of the witness.
#[test]
fn relevant_v4_a_witness_that_came_after_the_last_relevant_change_is_none() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)])]);
    assert!(scene.write("b", &[(FAR, READY)]), "the version in force then has no witness");
    assert!(!scene.write("b", &[(FAR, READY), (THIRD, READY)]));
    assert!(scene.write("b", &[(THIRD, READY)]), "the third came after it, the other one is gone");
    assert!(!scene.write("a", &[(POD, DEAD)]));
}

/// The node has the second write only.
#[test]
fn relevant_v5_a_witness_that_moves_between_slices_is_none() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    assert!(!scene.write("c", &[(FAR, READY)]), "the copy in b stands");
    assert!(scene.write("b", &[]), "ready in some slice all the time, but in none throughout");
    assert!(!scene.remove("b"), "it says no more than it did");
}

/// The node has the version in which the pod serves.
#[test]
fn relevant_v6_not_serving_now_is_not_enough() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)])]);
    assert!(scene.write("a", &[(POD, DEAD)]));
    assert!(!scene.write("a", &[]), "in no version since does it serve");
    assert!(!scene.write("b", &[(FAR, READY)]));
}

/// The node has the second write only.
#[test]
fn relevant_v8_a_pod_that_serves_again_without_a_standing_witness_is_one() {
    let mut scene = Scene::listed(&[("a", &[(POD, DEAD)]), ("b", &[(FAR, UNREADY)])]);
    assert!(!scene.write("b", &[(FAR, READY)]));
    assert!(scene.write("a", &[(POD, LEAVING)]), "somebody is ready now, but was not when the pod last changed");
    assert!(scene.is_withdrawn_now());
}

#[test]
fn relevant_v9_under_local_a_witness_on_another_node_is_none() {
    let mut scene = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (NEAR, READY), (FAR, READY)])]);
    assert!(scene.is_withdrawn());
    assert!(scene.write("a", &[(POD, LEAVING), (NEAR, UNREADY), (FAR, READY)]));
    assert_eq!(scene.state(), Some(State::Routed));
    assert!(scene.write("a", &[(POD, LEAVING), (NEAR, READY), (FAR, READY)]));
    assert!(!scene.write("a", &[(POD, DEAD), (NEAR, READY), (FAR, READY)]));
}

#[test]
fn relevant_v9_under_local_a_witness_that_changes_its_node_is_none() {
    let mut scene = Scene::listed_with(local_service(), &[("a", &[(POD, LEAVING), (NEAR, READY)])]);
    let mut moved = endpoint(NEAR, READY);
    moved.node = endpoint(FAR, READY).node;
    assert!(scene.deliver(&slice("a", 90, vec![endpoint(POD, LEAVING), moved])));
    assert_eq!(scene.state(), Some(State::Routed));
}

#[test]
fn relevant_under_a_witness_the_pod_may_stop_serving_recover_and_go() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    for conditions in [DEAD, LEAVING, DEAD, LEAVING] {
        assert!(!scene.write("a", &[(POD, conditions)]));
    }
    assert!(!scene.remove("a"));
    assert!(scene.write("b", &[(THIRD, READY)]), "the witness goes, and a node may not have heard that the pod did");
    assert!(!scene.write("b", &[]), "by now every node that counts has");
    assert!(scene.is_withdrawn());
}

#[test]
fn relevant_every_change_is_while_the_pod_is_ready() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)]), ("b", &[(FAR, READY)])]);
    let generation = scene.routing.generation(Family::V4);
    assert!(scene.write("b", &[(FAR, READY), (THIRD, READY)]));
    assert!(scene.write("b", &[(FAR, READY)]));
    assert_eq!(scene.routing.generation(Family::V4), generation + 2);
    assert_eq!(scene.routing.last_relevant_change(Family::V4), Some(scene.now));
}

#[test]
fn relevant_every_un_withdrawal_is() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    assert!(scene.write("a", &[(POD, READY)]));
    assert_eq!(scene.state(), Some(State::Routed));
    assert!(scene.write("a", &[(POD, LEAVING)]));
    assert!(scene.remove("b"));
    assert_eq!(scene.state(), Some(State::Routed));
}

#[test]
fn relevant_a_witness_is_an_address_with_its_port() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    let other_number =
        |version, ready| Slice { ports: vec![port("http", 8081)], ..slice("c", version, vec![endpoint(FAR, ready)]) };
    assert!(!scene.deliver(&other_number(90, UNREADY)), "another port of the address says nothing of the witness");
    assert!(!scene.deliver(&other_number(91, READY)));
    assert!(scene.deliver(&Slice { ports: vec![port("http", 8081)], ..slice("b", 92, vec![endpoint(FAR, READY)]) }));
}

#[test]
fn relevant_a_slice_made_again_under_its_name_is_another() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)]), ("c", &[(THIRD, READY)])]);
    assert!(!scene.remove("b"));
    assert!(!scene.write("b", &[(FAR, READY)]));
    assert!(scene.remove("c"), "the one in b was gone for a moment");
}

#[test]
fn relevant_a_version_that_is_told_twice_is_no_change() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    let again = slice("a", scene.versions, vec![endpoint(POD, READY)]);
    assert!(!scene.deliver(&again));
}

#[test]
fn relevant_other_services_and_families_do_not_count() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    let other = Slice { service: ServiceName("other".into()), ..slice("o", 90, vec![]) };
    assert!(!scene.deliver(&other));
    let v6 = Slice { family: Family::V6, ..slice("v6", 91, vec![]) };
    assert!(!scene.deliver(&v6));
    assert_eq!(scene.routing.generation(Family::V6), 0);
}

#[test]
fn relevant_a_slice_that_changes_its_service_leaves_the_old_one() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    let other = ServiceName("other".into());
    assert!(scene.deliver(&Slice { service: other, ..slice("b", 90, vec![endpoint(FAR, READY)]) }));
    assert_eq!(scene.state(), Some(State::Routed));
}

#[test]
fn relevant_a_slice_that_gets_a_label_is_gone_for_kube_proxy() {
    let mut scene = Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])]);
    let proxy = ServiceProxy::Foreign;
    assert!(scene.deliver(&Slice { proxy, ..slice("b", 90, vec![endpoint(FAR, READY)]) }));
    assert_eq!(scene.state(), Some(State::Routed));
}
