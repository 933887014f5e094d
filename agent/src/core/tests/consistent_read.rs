//! C9: before any end but the bound, a consistent read shows what is believed.

use super::{
    cluster::{LEAVING, READY, node, routing, with_routing},
    truth::{ms, port},
    world::World,
};
use crate::core::{
    class::Class,
    cluster::{ClusterEvent, ReadOutcome},
    journal::Transition,
    listener::Family,
    settings::{RoutingSettings, Settings},
    verdict::{Condition, Reason},
};

/// Withdrawn at 100 and confirmed at 2500 by the fence; nothing answers a read by itself.
fn confirmed() -> World {
    let routing = RoutingSettings { fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(routing), ..with_routing() });
    world.hook();
    world.cluster.silent = true;
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(2500);
    world.fence_shows();
    world
}

#[test]
fn c9_a_read_that_is_not_answered_holds_the_drain() {
    let mut world = confirmed();
    world.run_to(59_000);
    assert_eq!(world.holding(), [Condition::Routing]);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.unseen()), (Reason::Bound, vec!["api"]), "and is named");
}

#[test]
fn the_record_says_of_a_read_that_it_agrees_when_it_does() {
    let agrees = |world: &World| world.journal().iter().filter(|what| **what == Transition::ReadAgrees).count();
    let mut world = confirmed();
    let slice = world.write_slice(&[(1, LEAVING), (3, READY)]);
    world.answer_read(world.last_read());
    assert_eq!(agrees(&world), 0, "it shows what the watch has not told");
    world.say(ClusterEvent::SliceWritten(slice));
    world.run_to(2600);
    assert_eq!(agrees(&world), 0, "a change after which another read is due");
}

#[test]
fn c9_a_read_that_nobody_needed_yet_is_not_named() {
    let routing = RoutingSettings { fence: true, ..routing() };
    let mut busy = World::at_rest(Settings { routing: Some(routing), ..with_routing() });
    busy.hook();
    busy.cluster.silent = true;
    busy.run_to(100);
    busy.slice(&[(1, LEAVING), (2, READY)]);
    busy.traffic(500, 2500);
    busy.fence_shows();
    busy.traffic(500, 60_000);
    assert!(busy.reads().is_empty());
    let answer = busy.run_out();
    assert_eq!((answer.reason(), answer.unseen()), (Reason::Bound, Vec::new()));

    // A node is named by itself, whatever is under way, and that a Service routes to the pod is no fault.
    let mut joined = confirmed();
    joined.say(ClusterEvent::NodeAdded(node("new")));
    let answer = joined.run_out();
    assert_eq!((answer.reason(), answer.unseen()), (Reason::Bound, vec!["fence", "node"]));
    let mut routed = World::at_rest(with_routing());
    routed.hook();
    let answer = routed.run_out();
    assert_eq!((answer.reason(), answer.unseen().contains(&"api")), (Reason::Bound, false));
}

#[test]
fn c9_a_read_is_begun_after_the_last_piece_of_evidence() {
    let mut world = confirmed();
    assert_eq!(world.reads(), [2500]);
    let early = world.last_read();
    world.run_to(2600);
    world.say(ClusterEvent::NodeAdded(node("new")));
    world.say(ClusterEvent::NodeRemoved(node("new").name));
    world.run_to(2700);
    world.answer_read(early);
    world.run_to(2750);
    assert_eq!(world.answers.len(), 0, "it began before the last piece of evidence");
    assert_eq!(world.reads(), [2500, 2600]);
    world.answer_read(world.last_read());
    world.run_to(7099);
    assert_eq!(world.answers.len(), 0, "a node that has gone is waited for, from the change at 100 on");
    world.answer_read(world.last_read());
    world.run_to(7200);
    assert_eq!(world.reasons(), [Reason::Unverified], "a node that has gone is not observed");
}

#[test]
fn c9_everything_else_is_read_again_after_the_answer() {
    let mut world = confirmed();
    world.run_to(2900);
    world.syn(80);
    world.answer_read(world.last_read());
    world.run_to(3000);
    assert_eq!(world.answers.len(), 0, "a SYN came while the read was under way");
    assert_eq!(world.holding(), [Condition::Quiet]);
}

#[test]
fn c9_a_full_accept_queue_is_looked_at_again_before_the_read() {
    let mut world = unanswered_while_one_waits(|_| {});
    world.run_to(9000);
    world.truth.listeners.insert(port(80), 0);
    assert_eq!(world.run_out().reason(), Reason::RoutedAway);
    assert!(world.answers[0].at_ms() < 9600, "{}", world.answers[0].at_ms());
}

#[test]
fn c9_a_full_accept_queue_is_looked_at_again_though_readings_in_between_do_not_tell() {
    // SYNs that hold nothing, such as those of a health check inside the pod: shallow readings do not tell then whether a
    // handshake is under way.
    let mut world = unanswered_while_one_waits(|world| {
        world.truth.listeners.insert(port(80), 0);
        world.truth.syn_of(Class::Ignored, port(80), Family::V4, world.now);
        world.look();
    });
    assert_eq!(world.run_out().reason(), Reason::RoutedAway);
    assert!(world.answers[0].at_ms() < 4600, "{}", world.answers[0].at_ms());
}

/// Everything but the accept queue is met before the read is asked for; the read is answered at once.
fn unanswered_while_one_waits(then: impl FnOnce(&mut World)) -> World {
    let routing = RoutingSettings { fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(routing), ..with_routing() });
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.truth.listeners.insert(port(80), 1);
    world.run_to(2500);
    world.fence_shows();
    world.run_to(4000);
    assert_eq!(world.answers.len(), 0);
    then(&mut world);
    world
}

#[test]
fn c9_what_the_watch_has_not_delivered_is_awaited() {
    let mut world = confirmed();
    let slice = world.write_slice(&[(2, READY)]);
    world.answer_read(world.last_read());
    world.run_to(3000);
    assert_eq!(world.answers.len(), 0);
    world.say(ClusterEvent::SliceWritten(slice));
    world.run_to(3100);
    assert_eq!(world.reasons(), [Reason::RoutedAway], "it was no relevant change, and the watch delivered it");
    assert_eq!(world.reads(), [2500]);
}

#[test]
fn c9_what_the_watch_never_delivers_is_a_relevant_change() {
    let mut world = confirmed();
    world.write_slice(&[(1, READY), (2, READY)]);
    world.answer_read(world.last_read());
    world.run_to(4499);
    assert!(!world.journal().contains(&Transition::WatchBehind), "poll.timeout is 2 s");
    world.run_to(4501);
    assert!(world.journal().contains(&Transition::WatchBehind));
    world.fence_shows();
    world.run_to(8000);
    world.fence_shows();
    for _ in 0..5 {
        world.answer_read(world.last_read());
        let next = world.now + ms(3000);
        world.run(next);
    }
    assert_eq!(world.answers.len(), 0, "the pod is routed to, and only the reads know");
    assert_eq!(world.run_out().reason(), Reason::Bound);
}

#[test]
fn c9_a_node_that_only_the_read_shows_is_to_confirm_too() {
    let mut world = confirmed();
    world.cluster.nodes.push(node("new"));
    world.answer_read(world.last_read());
    world.run_to(3000);
    assert_eq!(world.answers.len(), 0);
    assert_eq!(world.holding(), [Condition::Routing]);
}

#[test]
fn c9_a_slice_that_is_gone_is_awaited_too() {
    let mut world = confirmed();
    let slice = world.cluster.slices.pop_first().expect("a slice").0;
    world.answer_read(world.last_read());
    world.run_to(2600);
    assert_eq!(world.answers.len(), 0);
    world.say(ClusterEvent::SliceRemoved(slice));
    // Its removal is relevant: without another endpoint nobody knows which mixture a node holds.
    world.run_to(2700);
    assert_eq!(world.answers.len(), 0);
}

#[test]
fn c9_a_read_that_fails_is_made_again() {
    let mut world = confirmed();
    world.cluster.reads = Some(ReadOutcome::Failed("429".to_owned()));
    world.answer_read(world.last_read());
    world.run_to(2749);
    assert_eq!(world.reads(), [2500]);
    world.run_to(2751);
    assert_eq!(world.reads(), [2500, 2750]);
    world.cluster.reads = None;
    world.answer_read(world.last_read());
    world.run_to(2800);
    assert_eq!(world.reasons(), [Reason::RoutedAway]);
}

#[test]
fn c9_without_the_right_to_read_it_is_done_without_and_said() {
    let mut world = confirmed();
    world.cluster.reads = Some(ReadOutcome::Forbidden("forbidden".to_owned()));
    world.answer_read(world.last_read());
    world.run_to(2600);
    assert_eq!(world.reasons(), [Reason::Unverified]);
    let verdict = &world.answers.first().expect("an answer").verdict;
    assert_eq!(verdict.not_observed.iter().map(|thing| thing.what.as_str()).collect::<Vec<_>>(), ["api"]);
}

#[test]
fn c9_without_the_right_to_read_everything_else_is_read_again_all_the_same() {
    let mut world = confirmed();
    world.run_to(3000);
    world.syn(80);
    world.cluster.reads = Some(ReadOutcome::Forbidden("forbidden".to_owned()));
    world.answer_read(world.last_read());
    world.run_to(3100);
    assert_eq!(world.answers.len(), 0, "a SYN came while the read was under way");
}

#[test]
fn c9_a_read_is_made_shortly_before_the_end_and_not_all_the_while() {
    // Connections keep coming, so that the end is far off.
    let mut world =
        World::at_rest(Settings { routing: Some(RoutingSettings { fence: true, ..routing() }), ..with_routing() });
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    while world.now_ms() < 20_000 {
        let next = world.now + ms(500);
        world.run(next);
        world.connect(80);
        if world.now_ms() == 2600 {
            world.fence_shows();
        }
    }
    let answer = world.run_out().clone();
    assert_eq!(answer.reason(), Reason::RoutedAway);
    assert_eq!(answer.at_ms(), 22_100);
    assert_eq!(world.reads(), [21_850]);
}

#[test]
fn c9_a_relist_makes_the_read_again() {
    let mut world = confirmed();
    let early = world.last_read();
    world.run_to(2600);
    let services = world.cluster.services.values().cloned().collect();
    world.say(ClusterEvent::ServicesListed(services));
    world.answer_read(early);
    world.run_to(2700);
    assert_eq!(world.answers.len(), 0);
    assert_eq!(world.reads(), [2500, 2600]);

    // One of the slices voids what the nodes have shown, too.
    let slices = world.cluster.slices.values().cloned().collect();
    world.say(ClusterEvent::SlicesListed(slices));
    world.answer_read(world.last_read());
    world.run_to(4700);
    assert_eq!((world.answers.len(), world.reads()), (0, vec![2500, 2600]));
    world.fence_shows();
    assert_eq!(world.reads(), [2500, 2600, 4700]);
}

#[test]
fn c9_a_read_that_fails_waits_before_the_next_whatever_an_earlier_one_showed() {
    let mut world = confirmed();
    world.syn(80);
    world.answer_read(world.last_read());
    for syn_at in [4000, 5900] {
        world.run_to(syn_at);
        world.syn(80);
    }
    // Quiet until 7900; the first read counts no longer by then.
    world.run_to(7700);
    assert_eq!(world.reads(), [2500, 7650]);
    world.cluster.reads = Some(ReadOutcome::Failed("429".to_owned()));
    world.answer_read(world.last_read());
    world.run_to(7949);
    assert_eq!(world.reads(), [2500, 7650]);
    world.run_to(7951);
    assert_eq!(world.reads(), [2500, 7650, 7950]);
}

#[test]
fn c9_a_node_that_the_watch_told_of_since_is_not_gone_because_a_read_lacks_it() {
    let mut world = confirmed();
    world.run_to(2600);
    world.say(ClusterEvent::NodeAdded(node("new")));
    world.run_to(2700);
    // It began before the node joined, and the API server lets nobody read any more after it.
    world.answer_read(world.last_read());
    world.cluster.reads = Some(ReadOutcome::Forbidden("forbidden".to_owned()));
    world.answer_read(world.last_read());
    world.run_to(10_000);
    assert_eq!(world.answers.len(), 0, "the node is awaited");
    assert_eq!(world.holding(), [Condition::Routing]);
}

#[test]
fn c9_a_node_that_the_watch_saw_go_is_not_brought_back_by_an_earlier_read() {
    let mut world = confirmed();
    let early = world.last_read();
    world.run_to(2600);
    world.say(ClusterEvent::NodeRemoved(node("there").name));
    world.answer_read(early);
    world.cluster.reads = Some(ReadOutcome::Failed("503".to_owned()));
    world.answer_read(world.last_read());
    world.cluster.nodes = [node("here")].to_vec();
    world.cluster.reads = None;
    world.run_to(3000);
    world.answer_read(world.last_read());
    world.run_to(7099);
    world.answer_read(world.last_read());
    world.run_to(7200);
    assert_eq!(world.reasons(), [Reason::Unverified], "nobody can tell more of it");
}
