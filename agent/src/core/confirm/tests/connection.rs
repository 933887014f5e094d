//! What a connection, an answer and an edge are: C1, C2, C3.

use super::*;

#[test]
fn c1_a_broken_connection_voids_stamps() {
    for broken in [HealthOutcome::Broken, HealthOutcome::Refused] {
        let mut scene = Scene::changed_at(0);
        scene.answer(WATCH_LAG, 1);
        scene.answer(WATCH_LAG + 10, 2);
        scene.report("a", WATCH_LAG + 20, broken);
        scene.reconnect();
        scene.answer(WATCH_LAG + 30, 3);
        scene.answer(WATCH_LAG + 40, 4);
        assert_eq!(scene.by(), None, "one edge on each connection");
        scene.answer(WATCH_LAG + 50, 5);
        assert_eq!(scene.by(), Some(By::Syncs));
    }
}

#[test]
fn c1_a_new_connection_voids_stamps_though_nobody_saw_the_old_one_break() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.reconnect();
    scene.answer(WATCH_LAG + 30, 3);
    scene.answer(WATCH_LAG + 40, 4);
    assert_eq!(scene.by(), None);
}

#[test]
fn c1_what_comes_late_over_an_old_connection_says_nothing() {
    let mut scene = Scene::changed_at(0);
    scene.reconnect();
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.report_over(1, "a", WATCH_LAG + 20, status(Some((7, true)), None));
    assert_eq!(scene.by(), None, "another process' stamp is no edge");
    scene.report_over(1, "a", WATCH_LAG + 20, HealthOutcome::Broken);
    scene.answer(WATCH_LAG + 30, 3);
    assert_eq!(scene.by(), Some(By::Syncs), "nor is another connection's end this one's");

    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.report("a", WATCH_LAG + 20, HealthOutcome::Broken);
    for stamp in 3..9 {
        scene.answer(WATCH_LAG + 30, stamp);
    }
    assert_eq!(scene.by(), None, "a broken connection answers no more");
}

#[test]
fn c1_a_timeout_does_not_break_the_connection() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.report("a", WATCH_LAG + 20, HealthOutcome::TimedOut);
    scene.answer(WATCH_LAG + 30, 3);
    assert_eq!(scene.by(), Some(By::Syncs));
}

#[test]
fn c2_only_a_status_of_the_family_counts() {
    let mut scene = Scene::changed_at(0);
    for (millis, stamp) in [(WATCH_LAG, 1), (WATCH_LAG + 10, 2), (WATCH_LAG + 20, 3)] {
        scene.report("a", millis, status(None, Some((stamp, true))));
    }
    assert_eq!(scene.by(), None);
    scene.confirmations.relevant_change(Family::V6, at(0));
    assert_eq!(scene.confirmations.state(&node("a"), Family::V6), Some(NodeState::Pending));

    // The base is the first answer with a status, and not the connection's first answer.
    let mut scene = Scene::changed_at(0);
    scene.report("a", 10, no_status());
    scene.answer(STEADY, 1);
    scene.answer(STEADY + 10, 1);
    assert_eq!(scene.state(), NodeState::Pending);
    scene.answer(STEADY + STEADY, 1);
    assert_eq!(scene.state(), NodeState::Waited);
}

#[test]
fn c2_an_answer_without_a_status_is_unobservable_with_its_reason() {
    let mut scene = Scene::changed_at(0);
    scene.report("a", 10, no_status());
    assert_eq!(scene.state(), NodeState::Pending, "a kube-proxy that is starting answers so for a moment");
    scene.report("a", 10 + WATCH_LAG, no_status());
    let why = Why::NoStatus("an answer of another proxy".to_owned());
    assert_eq!(scene.state(), NodeState::Unobservable { why });

    let mut scene = Scene::changed_at(0);
    scene.report("a", 10, status(None, Some((1, true))));
    scene.report("a", 10 + WATCH_LAG, status(None, Some((1, true))));
    let why = Why::NoStatus("its health server has no status of IPv4".to_owned());
    assert_eq!(scene.state(), NodeState::Unobservable { why });
}

#[test]
fn c2_a_node_that_gave_a_status_before_is_awaited_when_it_gives_none() {
    let mut scene = Scene::changed_at(0);
    scene.answer(1, 1);
    scene.report("a", 10, no_status());
    scene.report("a", 10 + WATCH_LAG, no_status());
    assert_eq!(scene.state(), NodeState::Pending);
}

#[test]
fn c3_a_stamp_that_differs_is_an_edge_whichever_way_the_clock_stepped() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 5);
    scene.answer(WATCH_LAG + 10, 3);
    scene.answer(WATCH_LAG + 20, 3);
    assert_eq!(scene.by(), None);
    scene.answer(WATCH_LAG + 30, 4);
    assert_eq!(scene.by(), Some(By::Syncs));
}

#[test]
fn c3_an_edge_is_as_old_as_the_earlier_of_its_two_requests() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG - 1, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.answer(WATCH_LAG + 20, 3);
    assert_eq!(scene.by(), None, "the first edge may be from before the change + watchLag");
    scene.answer(WATCH_LAG + 30, 4);
    assert_eq!(scene.by(), Some(By::Syncs));
}

#[test]
fn c3_an_answer_is_as_old_as_its_request() {
    let late = |scene: &mut Scene, sent: u64, stamp: i128| {
        scene.confirmations.health(&HealthReport {
            node: node("a"),
            connection: ConnectionId(1),
            sent_at: at(sent),
            received_at: at(sent + 60_000),
            outcome: status(Some((stamp, true)), None),
        });
    };
    let mut scene = Scene::changed_at(1_000);
    late(&mut scene, 1_000 + WATCH_LAG - 1, 1);
    late(&mut scene, 1_000 + WATCH_LAG + 10, 2);
    late(&mut scene, 1_000 + WATCH_LAG + 20, 3);
    assert_eq!(scene.state(), NodeState::Pending);
    late(&mut scene, 1_000 + STEADY - 1, 3);
    assert_eq!(scene.state(), NodeState::Pending, "what is in it may be from before the end of the wait");
    late(&mut scene, 1_000 + STEADY, 3);
    assert_eq!(scene.by(), Some(By::SettledByWait));
}

#[test]
fn c3_an_answer_that_comes_again_or_out_of_turn_is_no_edge() {
    let mut scene = Scene::changed_at(0);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    scene.answer(WATCH_LAG + 10, 2);
    scene.answer(WATCH_LAG, 1);
    scene.answer(WATCH_LAG + 10, 2);
    assert_eq!(scene.by(), None);
}
