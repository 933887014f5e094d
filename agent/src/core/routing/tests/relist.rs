//! C10: a gap in the agent's watch.

use super::{
    super::State,
    scene::{DEAD, FAR, LEAVING, POD, READY, Scene, endpoint, relevant, slice},
};
use crate::core::listener::Family;

fn under_a_witness() -> Scene {
    Scene::listed(&[("a", &[(POD, LEAVING)]), ("b", &[(FAR, READY)])])
}

fn list(scene: &mut Scene, versions: [u64; 2]) -> bool {
    let [a, b] = versions;
    let slices = vec![slice("b", b, vec![endpoint(FAR, READY)]), slice("a", a, vec![endpoint(POD, LEAVING)])];
    let at = scene.tick();
    relevant(&scene.routing.slices_listed(&slices, at))
}

/// A slice that lists the pod ready may have come and gone in between.
#[test]
fn c10_a_relist_that_shows_the_same_versions_is_a_change_too() {
    let mut scene = under_a_witness();
    assert!(list(&mut scene, [1, 2]));
    assert!(scene.is_withdrawn_now());
    assert!(!scene.write("a", &[(POD, DEAD)]), "the witness stands");
}

#[test]
fn c10_a_relist_after_the_pods_slice_has_gone_is_a_change_too() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    scene.remove("a");
    let before = scene.state();
    scene.relist(&[]);
    assert!(scene.is_withdrawn_now() && scene.state() != before);
}

#[test]
fn c10_a_relist_that_shows_another_version_is_one_whatever_it_says() {
    for versions in [[1, 3], [3, 2]] {
        let mut scene = under_a_witness();
        assert!(list(&mut scene, versions));
        assert!(scene.is_withdrawn_now());
    }
}

#[test]
fn c10_a_relist_in_which_a_slice_appears_or_vanishes_is_one() {
    let mut scene = under_a_witness();
    let slices = vec![slice("a", 1, vec![endpoint(POD, LEAVING)])];
    let at = scene.tick();
    let changes = scene.routing.slices_listed(&slices, at);
    assert!(relevant(&changes));
    assert_eq!(scene.state(), Some(State::Routed));
    assert_eq!(changes.turns.len(), 1);
    assert!(list(&mut scene, [1, 9]));
    assert!(scene.is_withdrawn_now());
}

#[test]
fn c10_a_relist_that_shows_the_pod_nowhere_is_a_withdrawal() {
    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    let at = scene.tick();
    assert!(relevant(&scene.routing.slices_listed(&[], at)));
    assert!(scene.routing.known());
    assert!(scene.is_withdrawn_now());
    assert_eq!(scene.routing.slice_versions().count(), 0);
}

/// In the gap the witness may have gone and come back: it stands only from the list on.
#[test]
fn c10_a_relist_is_one_step() {
    let mut scene = under_a_witness();
    let generation = scene.routing.generation(Family::V4);
    scene.relist(&[("a", &[(POD, LEAVING)]), ("c", &[(FAR, READY)]), ("d", &[])]);
    assert_eq!(scene.routing.generation(Family::V4), generation + 1, "however many slices differ");
    assert!(scene.is_withdrawn_now(), "no state in between, in which nobody is ready");
    assert!(!scene.write("a", &[(POD, DEAD)]));
}

#[test]
fn c10_a_relist_of_a_service_that_never_listed_the_pod_is_none() {
    let mut scene = Scene::listed(&[("a", &[(FAR, READY)])]);
    scene.relist(&[("a", &[(FAR, READY)]), ("b", &[])]);
    assert_eq!(scene.routing.generation(Family::V4), 0);
}

/// Else every Service that ever was in the namespace would cost memory until the drain's end.
#[test]
fn a_service_that_is_gone_and_never_listed_the_pod_is_forgotten() {
    let mut scene = Scene::listed(&[("a", &[(FAR, READY)])]);
    assert_eq!(scene.routing.backends.len(), 1);
    scene.remove("a");
    assert_eq!(scene.routing.backends.len(), 0);

    let mut scene = Scene::listed(&[("a", &[(FAR, READY)])]);
    scene.relist(&[]);
    assert_eq!(scene.routing.backends.len(), 0);

    let mut scene = Scene::listed(&[("a", &[(POD, READY)])]);
    scene.remove("a");
    assert!(scene.is_withdrawn_now(), "one that listed it is not");
}
