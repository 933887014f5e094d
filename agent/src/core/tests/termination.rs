//! S5: a hook that is called because a container is restarted.

use super::{
    cluster::{READY, with_routing},
    truth::ms,
    world::{World, settings},
};
use crate::core::{
    event::{Action, Event},
    journal::Transition,
    phase::{FailAfter, Phase},
    settings::Settings,
    termination::{PodRead, Sign},
    verdict::Reason,
};

fn guarded() -> Settings {
    let busy = ms(8000);
    Settings {
        restart_guard: Some(ms(5000)),
        fail_after: Some(FailAfter::Never),
        quiet_period: busy,
        max_wait: ms(20_000),
        ..settings()
    }
}

fn world(pod: Option<PodRead>) -> World {
    let mut world = World::at_rest(guarded());
    world.cluster.pod = pod;
    world.connect(80);
    world
}

fn pod_reads(world: &World) -> Vec<u64> {
    let reads = world.asked.iter().filter(|(_, action)| matches!(action, Action::ReadPod(_)));
    reads.map(|(at, _)| *at).collect()
}

#[test]
fn s5_a_pod_that_is_not_terminating_ends_the_drain_after_the_guard() {
    let mut world = world(Some(PodRead::NotTerminating));
    world.hook();
    world.run_to(6000);
    let answer = world.answers.first().expect("an answer").clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::NotTerminating, 5000));
    assert_eq!(pod_reads(&world), [0, 5000], "what counts is read after the guard");
    assert!(world.cluster.told.is_empty(), "S4");
    // The next drain is a real one.
    world.cluster.pod = Some(PodRead::Terminating);
    world.connect(80);
    world.hook();
    let answer = world.run_out().clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Quiet, 14_000));
}

#[test]
fn s5_sigterm_within_the_guard_says_that_it_is() {
    for at in [0, 4999] {
        let mut world = world(Some(PodRead::NotTerminating));
        world.hook();
        world.run_to(at);
        world.handle(Event::Terminate);
        world.run_to(19_000);
        assert_eq!(world.reasons(), [Reason::Quiet], "at {at}");
        assert!(world.journal().contains(&Transition::TerminationShown(Sign::Signal)));
    }
}

#[test]
fn s5_the_agents_own_hook_says_that_it_is() {
    for before in [true, false] {
        let mut world = world(Some(PodRead::NotTerminating));
        if before {
            world.handle(Event::OwnHookCalled);
            world.run_to(3000);
        }
        world.hook();
        if !before {
            world.run_to(3000);
            world.handle(Event::OwnHookCalled);
        }
        world.run_to(19_000);
        assert_eq!(world.reasons(), [Reason::Quiet], "before: {before}");
    }
}

#[test]
fn s5_an_own_hook_of_long_ago_says_nothing() {
    let mut world = world(Some(PodRead::NotTerminating));
    world.handle(Event::OwnHookCalled);
    world.run_to(5001);
    world.connect(80);
    world.hook();
    assert_eq!(world.run_out().reason(), Reason::NotTerminating);
}

#[test]
fn s5_a_read_that_began_within_the_guard_refutes_nothing() {
    let mut world = world(None);
    world.hook();
    let Some((0, Action::ReadPod(early))) = world.asked.first().cloned() else { panic!("{:?}", world.asked) };
    world.run_to(6000);
    world.handle(Event::PodRead(early, PodRead::NotTerminating));
    world.run_to(6001);
    assert!(world.answers.is_empty());
    assert_eq!(pod_reads(&world), [0, 6000]);
}

#[test]
fn s5_a_pod_that_is_deleted_or_disrupted_is_terminating() {
    let mut world = world(Some(PodRead::Terminating));
    world.hook();
    world.run_to(19_000);
    assert_eq!(world.reasons(), [Reason::Quiet]);
    assert_eq!(pod_reads(&world), [0], "it needs no other read");
}

#[test]
fn s5_without_the_right_to_read_the_drain_goes_on_and_says_so() {
    let mut world = world(Some(PodRead::Forbidden("forbidden".to_owned())));
    world.hook();
    let answer = world.run_out().clone();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::Quiet, 8000));
    assert_eq!(answer.unseen(), ["termination"]);
    assert_eq!(world.cluster.told, [(5000, Phase::Announce)], "after the guard at the latest");
}

#[test]
fn s5_a_drain_that_may_be_none_claims_nothing_of_the_nodes() {
    let mut world = World::at_rest(Settings { restart_guard: Some(ms(5000)), ..with_routing() });
    world.cluster.pod = Some(PodRead::Forbidden("forbidden".to_owned()));
    world.hook();
    world.run_to(100);
    world.slice(&[(2, READY)]);
    world.syncs(10_000);
    let answer = world.answers.first().expect("an end").clone();
    assert_eq!(answer.reason(), Reason::Unverified);
    assert_eq!(answer.unseen(), ["termination"]);
}

#[test]
fn s5_a_read_that_fails_is_made_again() {
    let mut world = world(Some(PodRead::Failed("503".to_owned())));
    world.hook();
    world.run_to(600);
    assert_eq!(pod_reads(&world), [0, 250, 500]);
    world.cluster.pod = Some(PodRead::NotTerminating);
    assert_eq!(world.run_out().reason(), Reason::NotTerminating);
}

#[test]
fn s5_an_answer_to_an_earlier_drain_is_none() {
    let mut world = world(None);
    world.hook();
    let Some((0, Action::ReadPod(early))) = world.asked.first().cloned() else { panic!("{:?}", world.asked) };
    assert_eq!(world.run_out().reason(), Reason::Quiet);
    let before = world.answers.len();
    world.hook();
    let called = world.now_ms();
    world.run_to(called + 6000);
    world.handle(Event::PodRead(early, PodRead::NotTerminating));
    world.run_to(called + 6500);
    assert_eq!(world.answers.len(), before);
}

#[test]
fn s5_an_end_as_not_terminating_keeps_the_floor() {
    let mut world = World::at_rest(Settings { min_wait: ms(7000), ..guarded() });
    world.cluster.pod = Some(PodRead::NotTerminating);
    world.hook();
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::NotTerminating, 7000));
}

#[test]
fn s5_without_a_guard_the_caller_is_believed() {
    let mut world = World::at_rest(Settings { restart_guard: None, ..guarded() });
    world.cluster.pod = Some(PodRead::NotTerminating);
    world.hook();
    assert_eq!(world.run_out().reason(), Reason::Quiet);
    assert!(pod_reads(&world).is_empty());
    assert_eq!(world.cluster.told, [(0, Phase::Announce)]);
}
