//! What voids evidence, and what is said of nodes: C10, C12, C14.

use super::*;

#[test]
fn c10_a_relevant_change_voids_every_confirmation_of_its_family() {
    let mut scene = Scene::changed_at(0);
    scene.confirmations.relevant_change(Family::V6, at(0));
    for stamp in 1..4 {
        let millis = WATCH_LAG + 10 * u64::try_from(stamp).unwrap();
        scene.report("a", millis, status(Some((stamp, true)), Some((stamp, true))));
    }
    scene.ask_fence(1, 10);
    scene.fence_shows(1, WATCH_LAG);
    assert_eq!(scene.by(), Some(By::Fence));
    assert_eq!(scene.tally(), Tally { confirmed: 1, ..Tally::default() });
    assert!(scene.confirmations.complete(Family::V4));

    scene.change(5_000);
    assert_eq!(scene.state(), NodeState::Pending);
    assert_eq!(scene.tally(), Tally { pending: 1, ..Tally::default() });
    assert!(!scene.confirmations.complete(Family::V4));
    let other = scene.confirmations.state(&node("a"), Family::V6);
    assert_eq!(other, Some(NodeState::Confirmed { by: By::Syncs, assumes: &[Assumption::WatchLag] }));
    assert_eq!(scene.confirmations.tally(Family::V6), Tally { assumed: 1, ..Tally::default() });

    scene.answer(5_000 + WATCH_LAG, 4);
    scene.answer(5_000 + WATCH_LAG + 10, 5);
    assert_eq!(scene.by(), None, "the edge before the change does not count");
    scene.answer(5_000 + WATCH_LAG + 20, 6);
    assert_eq!(scene.by(), Some(By::Syncs));
}

#[test]
fn c10_nothing_counts_before_the_first_list() {
    let mut scene = Scene::new();
    for stamp in 0..9 {
        scene.answer(STEADY * u64::try_from(stamp).unwrap(), stamp);
    }
    scene.ask_fence(1, STEADY);
    scene.fence_shows(1, 2 * STEADY);
    assert_eq!(scene.state(), NodeState::Pending);
    assert!(!scene.confirmations.complete(Family::V4));
    assert_eq!(scene.confirmations.fence_due(Family::V4), None);
}

#[test]
fn c10_nothing_is_complete_before_the_first_list() {
    let mut scene = Scene::new();
    scene.report("a", 10, HealthOutcome::Refused);
    assert!(matches!(scene.state(), NodeState::Unobservable { .. }));
    assert!(!scene.confirmations.complete(Family::V4));
    scene.change(20);
    assert!(scene.confirmations.complete(Family::V4));
}

#[test]
fn c10_a_change_that_comes_out_of_turn_makes_no_other_older() {
    let mut scene = Scene::changed_at(5_000);
    scene.change(1_000);
    scene.ask_fence(1, 4_000);
    scene.fence_shows(1, 60_000);
    scene.answer(1_000 + WATCH_LAG, 1);
    scene.answer(1_000 + WATCH_LAG + 10, 2);
    scene.answer(1_000 + WATCH_LAG + 20, 3);
    assert_eq!(scene.by(), None);

    scene.confirmations.policy_change(at(9_000));
    scene.confirmations.policy_change(at(6_000));
    assert_eq!(scene.confirmations.fence_due(Family::V4), Some(at(9_000 + WATCH_LAG)));
}

#[test]
fn c10_without_a_node_nothing_is_complete() {
    let bounds = Scene::new().confirmations.bounds;
    let mut confirmations = Confirmations::new(bounds, StatusGiven::default());
    confirmations.relevant_change(Family::V4, at(0));
    assert!(!confirmations.complete(Family::V4));
}

#[test]
fn c10_after_a_change_of_policy_the_fence_is_asked_when_the_nodes_have_it() {
    let mut scene = Scene::changed_at(0);
    scene.confirmations.policy_change(at(1_000));
    assert_eq!(scene.confirmations.fence_due(Family::V4), Some(at(1_000 + WATCH_LAG)));
    assert_eq!(scene.confirmations.fence_due(Family::V6), Some(at(1_000 + WATCH_LAG)));
    scene.ask_fence(1, 1_000 + WATCH_LAG - 1);
    scene.fence_shows(1, 10_000);
    assert_eq!(scene.by(), None);
    scene.ask_fence(2, 1_000 + WATCH_LAG);
    assert_eq!(scene.confirmations.fence_due(Family::V4), None);
    scene.fence_shows(2, 10_000);
    let assumes: &[_] = &[Assumption::FirstList, Assumption::WatchLag];
    assert_eq!(scene.state(), NodeState::Confirmed { by: By::Fence, assumes });

    // A later change of a slice does not make the policy's any earlier.
    scene.confirmations.policy_change(at(20_000));
    scene.change(20_100);
    assert_eq!(scene.confirmations.fence_due(Family::V4), Some(at(20_000 + WATCH_LAG)));
    scene.change(30_000);
    assert_eq!(scene.confirmations.fence_due(Family::V4), Some(at(30_000)));
}

#[test]
fn c12_a_node_that_does_not_answer_is_pending_once_any_of_its_system_gave_a_status() {
    for outcome in [HealthOutcome::Refused, HealthOutcome::TimedOut, HealthOutcome::Broken] {
        let mut scene = Scene::changed_at(0);
        scene.confirmations.node_added(&node("b"), OperatingSystem::Linux);
        scene.confirmations.node_added(&node("w"), OperatingSystem::Windows);
        scene.report("b", 10, outcome.clone());
        scene.report("w", 10, outcome);
        assert!(matches!(scene.state_of("b"), NodeState::Unobservable { why: Why::Silent(_) }));
        assert_eq!(scene.tally(), Tally { pending: 1, unobservable: 2, ..Tally::default() });

        scene.answer(20, 1);
        assert_eq!(scene.state_of("b"), NodeState::Pending);
        assert!(matches!(scene.state_of("w"), NodeState::Unobservable { why: Why::Silent(_) }));
        assert_eq!(scene.tally(), Tally { pending: 2, unobservable: 1, ..Tally::default() });

        scene.confirmations.node_added(&node("w"), OperatingSystem::Linux);
        assert_eq!(scene.tally(), Tally { pending: 3, ..Tally::default() }, "its label was read late");

        // Another drain of the same agent.
        let bounds = scene.confirmations.bounds;
        scene.confirmations = Confirmations::new(bounds, scene.confirmations.status_given());
        scene.confirmations.node_added(&node("b"), OperatingSystem::Linux);
        scene.report("b", 30, HealthOutcome::Refused);
        assert_eq!(scene.state_of("b"), NodeState::Pending);
    }
}

#[test]
fn c12_an_answer_without_a_status_is_no_status_given() {
    let mut scene = Scene::changed_at(0);
    scene.confirmations.node_added(&node("b"), OperatingSystem::Linux);
    scene.report("a", 10, no_status());
    scene.report("b", 10, HealthOutcome::Refused);
    assert!(matches!(scene.state_of("b"), NodeState::Unobservable { why: Why::Silent(_) }));
}

#[test]
fn c12_a_silence_between_two_answers_without_a_status_is_another_process_that_starts() {
    for silence in [HealthOutcome::Refused, HealthOutcome::TimedOut, HealthOutcome::Broken] {
        let mut scene = Scene::changed_at(0);
        scene.confirmations.node_added(&node("b"), OperatingSystem::Linux);
        scene.report("b", 5, status(Some((1, true)), None));
        scene.report("a", 10, no_status());
        scene.report("a", 20, silence);
        scene.reconnect();
        scene.report("a", 20 + WATCH_LAG, no_status());
        assert_eq!(scene.state(), NodeState::Pending);
        scene.report("a", 20 + 2 * WATCH_LAG, no_status());
        assert!(matches!(scene.state(), NodeState::Unobservable { why: Why::NoStatus(_) }));
    }
}

#[test]
fn c12_a_node_object_that_has_gone_is_not_observed() {
    let mut scene = Scene::changed_at(0);
    scene.answer(0, 1);
    scene.ask_fence(1, 0);
    scene.fence_shows(1, WATCH_LAG);
    assert_eq!(scene.by(), Some(By::Fence));
    scene.confirmations.node_removed(&node("a"));
    assert_eq!(scene.state(), NodeState::Unobservable { why: Why::Gone });
    scene.fence_shows(1, WATCH_LAG + 10);
    scene.answer(STEADY, 2);
    assert_eq!(scene.state(), NodeState::Unobservable { why: Why::Gone }, "what comes late");

    scene.confirmations.node_added(&node("a"), OperatingSystem::Linux);
    assert_eq!(scene.state(), NodeState::Pending);
    assert_eq!(scene.tally(), Tally { pending: 1, ..Tally::default() });
}

#[test]
fn c12_what_is_said_of_a_node_that_is_not_in_the_list_is_left_out() {
    let mut scene = Scene::changed_at(0);
    scene.report("nobody", 10, status(Some((1, true)), None));
    assert_eq!(scene.confirmations.state(&node("nobody"), Family::V4), None);
    assert_eq!(scene.tally().total(), 1);
}

#[test]
fn c14_a_syn_through_a_confirmed_node_voids_its_confirmation() {
    let mut scene = Scene::changed_at(0);
    assert_eq!(scene.contradict(10), None, "there is nothing to contradict");
    for stamp in 1..4 {
        scene.answer(WATCH_LAG + 10 * u64::try_from(stamp).unwrap(), stamp);
    }
    scene.ask_fence(1, 10);
    scene.fence_shows(1, WATCH_LAG + 40);
    assert_eq!(scene.contradict(WATCH_LAG), None, "it came before the node was confirmed");
    assert_eq!(scene.contradict(5_000), Some(By::Fence));
    assert_eq!(scene.state(), NodeState::Pending);
    assert_eq!(scene.tally(), Tally { pending: 1, ..Tally::default() });

    assert_eq!(scene.confirmations.fence_due(Family::V4), Some(at(5_000)));
    assert_eq!(scene.confirmations.node_due(&node("a"), at(5_000)), Some(at(5_000 + WATCH_LAG)), "it is asked anew");
    scene.fence_shows(1, 10_000);
    assert_eq!(scene.by(), None, "the markers from before it do not count");
    scene.answer(5_000 + WATCH_LAG, 4);
    scene.answer(5_000 + WATCH_LAG + 10, 5);
    assert_eq!(scene.by(), None);
    scene.answer(5_000 + WATCH_LAG + 20, 6);
    assert_eq!(scene.by(), Some(By::Syncs));
    scene.ask_fence(2, 5_000);
    scene.fence_shows(2, 5_000 + WATCH_LAG);
    assert_eq!(scene.by(), Some(By::Fence));
}

#[test]
fn what_is_due_next_is_when_an_answer_counts_for_more() {
    let mut scene = Scene::changed_at(1_000);
    assert_eq!(scene.confirmations.next_due(at(1_000)), Some(at(1_000 + WATCH_LAG)));
    assert_eq!(scene.confirmations.next_due(at(1_000 + WATCH_LAG)), Some(at(1_000 + WATCH_LAG + SYNC_TIME)));
    assert_eq!(scene.confirmations.next_due(at(9_000)), Some(at(1_000 + STEADY)));
    assert_eq!(scene.confirmations.next_due(at(1_000 + STEADY)), None);

    scene.answer(3_000, 1);
    let from_the_change = scene.confirmations.node_due(&node("a"), at(9_000));
    assert_eq!(from_the_change, Some(at(1_000 + STEADY)), "an edge and the wait from the change");
    let due = |scene: &Scene| scene.confirmations.node_due(&node("a"), at(1_000 + STEADY));
    assert_eq!(due(&scene), Some(at(3_000 + STEADY)), "the wait counts from the base");
    scene.answer(3_000 + STEADY, 1);
    assert_eq!(due(&scene), Some(at(3_000 + STEADY)), "it may still be confirmed");
    scene.answer(3_000 + STEADY + 10, 2);
    assert_eq!(due(&scene), None);
    assert_eq!(scene.confirmations.next_due(at(1_000)), None, "no node is pending");
}

#[test]
fn c14_a_syn_after_the_first_confirmation_contradicts_a_stronger_one_too() {
    let mut scene = Scene::changed_at(0);
    for stamp in 1..4 {
        scene.answer(WATCH_LAG + 10 * u64::try_from(stamp).unwrap(), stamp);
    }
    scene.ask_fence(1, 10);
    scene.fence_shows(1, 9_000);
    assert_eq!(scene.contradict(5_000), Some(By::Fence), "we hear of a SYN later than it came");
    assert_eq!(scene.state(), NodeState::Pending);
}
