//! The kinds of evidence: C4, C5, C6, C7, C11, and C13 that ranks them.

use super::*;

#[test]
fn c4_fence_confirms_what_was_asked_after_the_last_relevant_change() {
    let mut scene = Scene::changed_at(1_000);
    scene.ask_fence(1, 1_000);
    scene.fence_shows(2, 1_000 + WATCH_LAG);
    assert_eq!(scene.by(), None, "nobody asked that");
    scene.fence_shows(1, 1_000 + WATCH_LAG);
    assert_eq!(scene.by(), Some(By::Fence));
}

#[test]
fn c4_fence_of_a_request_before_the_change_shows_nothing() {
    let mut scene = Scene::changed_at(0);
    scene.ask_fence(1, 500);
    scene.change(500);
    scene.fence_shows(1, 10_000);
    assert_eq!(scene.by(), None);

    let mut scene = Scene::new();
    scene.ask_fence(1, 500);
    scene.change(400);
    scene.fence_shows(1, 10_000);
    assert_eq!(scene.by(), None, "we had not seen the change when we asked, whenever it came");
}

#[test]
fn c5_syncs_is_two_edges_after_the_change_and_the_lag() {
    let mut scene = Scene::changed_at(1_000);
    scene.answer(1_000 + WATCH_LAG, 1);
    scene.answer(1_000 + WATCH_LAG + 10, 2);
    assert_eq!(scene.by(), None);
    scene.answer_that(1_000 + WATCH_LAG + 20, 3, false);
    assert_eq!(scene.by(), Some(By::Syncs), "healthy or not");
}

#[test]
fn c5_an_edge_that_two_syncs_made_is_one() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 3);
    scene.answer(WATCH_LAG + 20, 3);
    assert_eq!(scene.by(), None);
}

#[test]
fn c6_settled_by_an_edge_and_an_answer_after_the_wait() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(10, 2);
    scene.answer(STEADY - 1, 2);
    assert_eq!(scene.by(), None);
    scene.answer_that(STEADY, 2, false);
    assert_eq!(scene.by(), None, "not healthy");
    scene.answer(STEADY + 10, 2);
    assert_eq!(scene.by(), Some(By::SettledByWait));
}

#[test]
fn c6_settled_needs_its_edge_after_the_change_and_on_the_same_connection() {
    let mut scene = Scene::changed_at(1_000);
    scene.answer(999, 1);
    scene.answer(1_010, 2);
    scene.answer(1_010 + STEADY, 2);
    assert_eq!(scene.state(), NodeState::Waited, "the edge may be from before the change");

    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(10, 2);
    scene.reconnect();
    scene.answer(20, 2);
    scene.answer(20 + STEADY, 2);
    assert_eq!(scene.state(), NodeState::Waited, "the edge was another process'");
}

#[test]
fn c6_settled_by_a_late_edge_alone() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG + SYNC_TIME - 1, 1);
    scene.answer_that(WATCH_LAG + SYNC_TIME + 10, 2, false);
    assert_eq!(scene.by(), None);

    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG + SYNC_TIME, 1);
    scene.answer_that(WATCH_LAG + SYNC_TIME + 10, 2, false);
    assert_eq!(scene.by(), Some(By::SettledByEdge));
}

#[test]
fn c7_waited_counts_from_the_change_and_from_the_arrival_of_the_base() {
    let mut scene = Scene::changed_at(1_000);
    scene.answer(500, 1);
    scene.answer(1_000 + STEADY - 1, 1);
    assert_eq!(scene.state(), NodeState::Pending);
    scene.answer_that(1_000 + STEADY, 1, false);
    assert_eq!(scene.state(), NodeState::Pending, "not healthy");
    scene.answer(1_000 + STEADY, 1);
    assert_eq!(scene.state(), NodeState::Waited);

    let mut scene = Scene::changed_at(1_000);
    scene.answer(3_000, 1);
    scene.answer(3_000 + STEADY - 1, 1);
    assert_eq!(scene.state(), NodeState::Pending, "the process may have started after the change");
    scene.answer(3_000 + STEADY, 1);
    assert_eq!(scene.state(), NodeState::Waited);
}

#[test]
fn c7_the_base_counts_from_its_arrival_and_not_from_its_request() {
    let mut scene = Scene::changed_at(0);
    scene.confirmations.health(&HealthReport {
        node: node("a"),
        connection: ConnectionId(1),
        sent_at: at(10),
        received_at: at(500),
        outcome: status(Some((1, true)), None),
    });
    scene.answer(10 + STEADY, 1);
    assert_eq!(scene.state(), NodeState::Pending);
    scene.answer(500 + STEADY, 1);
    assert_eq!(scene.state(), NodeState::Waited);
}

#[test]
fn c11_causal_evidence_counts_only_where_its_connection_stands_after_the_lag() {
    let mut scene = Scene::changed_at(1_000);
    scene.ask_fence(1, 1_000);
    scene.fence_shows(1, 1_000 + WATCH_LAG - 1);
    assert_eq!(scene.state(), NodeState::Pending);
    assert_eq!(scene.confirmations.next_due(at(1_500)), Some(at(1_000 + WATCH_LAG)));
    scene.fence_shows(1, 1_000 + WATCH_LAG);
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::Fence, assumes: &[Assumption::FirstList] });
}

#[test]
fn c13_stronger_replaces_weaker_and_says_what_it_assumes() {
    use Assumption::{FirstList, MinSync, NoFailedSync, SyncTime, WatchLag};
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(STEADY, 1);
    assert_eq!(scene.state(), NodeState::Waited);
    assert!(scene.confirmations.wants_health(&node("a"), Family::V4));
    scene.answer(STEADY + 10, 2);
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::SettledByEdge, assumes: &[WatchLag, SyncTime] });
    assert!(!scene.confirmations.wants_health(&node("a"), Family::V4));
    scene.answer(STEADY + 20, 3);
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::Syncs, assumes: &[WatchLag] });
    scene.ask_fence(1, 10);
    scene.fence_shows(1, STEADY + 30);
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::Fence, assumes: &[FirstList] });
    scene.answer(STEADY + 40, 4);
    assert_eq!(scene.by(), Some(By::Fence), "weaker does not replace stronger");

    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(10, 2);
    scene.answer(STEADY, 2);
    let assumes: &[_] = &[WatchLag, SyncTime, MinSync, NoFailedSync];
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::SettledByWait, assumes });
    assert!(!scene.confirmations.wants_health(&node("a"), Family::V4), "it is a confirmation");

    let bounds = scene.confirmations.bounds;
    let texts: Vec<_> =
        [FirstList, WatchLag, SyncTime, MinSync, NoFailedSync].map(|assumption| assumption.text(&bounds)).into();
    assert_eq!(texts, ["firstList<=2s", "watchLag<=2s", "syncTime<=3s", "minSync<=1s", "noFailedSync"]);
}

#[test]
fn c13_a_confirmation_outlives_its_connection() {
    let mut scene = Scene::changed_at(0);
    for stamp in 1..4 {
        scene.answer(WATCH_LAG + 10 * u64::try_from(stamp).unwrap(), stamp);
    }
    scene.report("a", 5_000, HealthOutcome::Broken);
    assert_eq!(scene.by(), Some(By::Syncs));
}
