//! The shortest traces that broke simpler rules (`docs/protocol.md`), as the agent sees them. Each must not confirm.

use super::*;

/// An unrelated sync took its snapshot before the withdrawal, and stamps after it.
#[test]
fn trace_a1_a_sync_under_way_stamps_after_the_change() {
    let mut scene = Scene::new();
    scene.answer(0, 1);
    scene.change(10);
    scene.answer(20, 2);
    scene.answer(WATCH_LAG + 10, 2);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// kube-proxy dies, its rules stay, and it stamps as it starts.
#[test]
fn trace_a2_a_process_stamps_as_it_starts() {
    let mut scene = Scene::new();
    scene.answer(0, 1);
    scene.change(10);
    scene.report("a", 20, HealthOutcome::Broken);
    scene.reconnect();
    scene.answer(WATCH_LAG + 10, 2);
    scene.answer(WATCH_LAG + 20, 2);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The node's clock steps back, so that an old stamp would look newer than the change.
#[test]
fn trace_a3_a_clock_steps_back() {
    let mut scene = Scene::new();
    scene.answer(0, 1_000_000_000);
    scene.change(10);
    scene.answer(WATCH_LAG + 10, 1_000_000_000);
    scene.answer(WATCH_LAG + 20, 1_000_000_000);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The sync under way stamps, kube-proxy restarts between two polls, and stamps again.
#[test]
fn trace_b2_a_restart_between_two_polls_makes_the_second_stamp() {
    let mut scene = Scene::new();
    scene.answer(0, 1);
    scene.change(10);
    scene.answer(WATCH_LAG + 10, 1);
    scene.answer(WATCH_LAG + 20, 2);
    scene.reconnect();
    scene.answer(WATCH_LAG + 30, 3);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// Two unrelated syncs stamp within `watchLag`, while the node has not heard of the withdrawal.
#[test]
fn trace_b4_and_b5_two_syncs_that_do_not_have_the_change() {
    let mut scene = Scene::new();
    scene.answer(0, 1);
    scene.change(10);
    scene.answer(20, 2);
    scene.answer(WATCH_LAG, 3);
    scene.answer(WATCH_LAG + 5, 4);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The withdrawal was taken back, and the agent's watch is late: when it hears of it, that voids.
#[test]
fn trace_b6_a_withdrawal_that_was_taken_back() {
    let mut scene = Scene::changed_at(0);
    for (millis, stamp) in [(WATCH_LAG, 1), (WATCH_LAG + 10, 2), (WATCH_LAG + 20, 3)] {
        scene.answer(millis, stamp);
    }
    scene.change(WATCH_LAG + 30);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The sync under way stamps; the next one, which has the change, still runs.
#[test]
fn trace_d1_settling_while_the_sync_with_the_change_still_runs() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(SYNC_TIME, 2);
    scene.answer(WATCH_LAG + 2 * SYNC_TIME, 2);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The pending time was deleted, so that `healthy` is true while a change is queued, for ever. No wait confirms.
#[test]
fn trace_e1_and_e2_healthy_with_a_change_queued() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(60_000, 1);
    scene.answer(600_000, 1);
    assert_eq!(scene.state(), NodeState::Waited);
}

/// A change within `watchLag`; the sync under way makes the edge; the next, which has the change, fails. The answer
/// after the wait says `noFailedSync`, and an edge alone counts only when it is later.
#[test]
fn trace_s3_the_edge_is_not_the_syncs_that_failed() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.answer(WATCH_LAG, 2);
    assert_eq!(scene.state(), NodeState::Pending);
    scene.answer(STEADY, 2);
    let NodeState::Confirmed { by: By::SettledByWait, assumes } = scene.state() else { panic!("{:?}", scene.state()) };
    assert!(assumes.contains(&Assumption::NoFailedSync));
}

/// It dies, its rules stay; it starts after the wait, stamps without a sync, and answers that it is healthy.
#[test]
fn trace_s9_a_process_that_started_after_the_wait() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.report("a", 10, HealthOutcome::Broken);
    scene.reconnect();
    scene.answer(STEADY, 2);
    scene.answer(STEADY + 10, 2);
    assert_eq!(scene.state(), NodeState::Pending);
    scene.answer(2 * STEADY, 2);
    assert_eq!(scene.state(), NodeState::Waited, "when it has had its own time");
}

/// A marker was seen before the change came: the withdrawal that it would confirm is another.
#[test]
fn trace_h3_and_h4_the_change_came_after_the_marker() {
    let mut scene = Scene::changed_at(0);
    scene.ask_fence(1, 0);
    scene.change(WATCH_LAG);
    scene.fence_shows(1, 2 * WATCH_LAG);
    assert_eq!(scene.state(), NodeState::Pending);
}

/// The process that showed the markers died within `watchLag`; the next one lists what is older than the withdrawal.
#[test]
fn trace_h22_a_marker_in_the_rules_of_a_dead_process() {
    let mut scene = Scene::changed_at(0);
    scene.ask_fence(1, 0);
    scene.fence_shows(1, WATCH_LAG - 1);
    assert_eq!(scene.state(), NodeState::Pending);
}
