//! Who is answered, and what each is told.

use super::world::{World, at, settings};
use crate::core::{
    event::{CallerId, Event},
    journal::Transition,
    verdict::Reason,
};

#[test]
fn every_caller_joins_the_same_drain() {
    let mut world = World::at_rest(settings());
    world.hook();
    world.run_to(1000);
    world.hook();
    world.run_to(1999);
    world.hook();
    assert_eq!(world.core.drain_view(world.now).unwrap().callers, 3);
    world.run_to(100_000);
    let answers: Vec<_> = world.answers.iter().map(|answered| (answered.caller, answered.at)).collect();
    assert_eq!(answers, [1, 2, 3].map(|caller| (CallerId(caller), at(2000))));
    assert!(world.answers.iter().all(|answered| answered.verdict == world.answers[0].verdict));
    assert_eq!(world.core.drains_ended(), 1);
}

#[test]
fn a_caller_that_goes_away_ends_nothing_and_gets_no_answer() {
    let mut world = World::at_rest(settings());
    let first = world.hook();
    let second = world.hook();
    world.handle(Event::HookLeft { caller: first });
    world.handle(Event::HookLeft { caller: CallerId(99) });
    assert_eq!(world.run_out().at, at(2000));
    assert_eq!(world.answers.iter().map(|answered| answered.caller).collect::<Vec<_>>(), [second]);
    let left = world.journal().iter().filter(|what| matches!(what, Transition::CallerLeft(_))).count();
    assert_eq!(left, 1);
}

#[test]
fn a_drain_that_every_caller_has_left_goes_on_to_its_end() {
    let mut world = World::at_rest(settings());
    let caller = world.hook();
    world.run_to(500);
    world.handle(Event::HookLeft { caller });
    world.run_to(1000);
    assert!(world.core.drain_view(world.now).is_some());
    world.run_to(5000);
    assert_eq!((world.core.drains_ended(), world.answers.len()), (1, 0));
    assert_eq!(world.core.verdict().unwrap().duration_ms, 2000);
}

#[test]
fn a_call_after_the_end_starts_a_new_drain() {
    let mut world = World::at_rest(settings());
    let first = world.hook();
    world.traffic(100, 1000);
    world.run_to(10_000);
    world.handle(Event::HookLeft { caller: first }); // its connection closes after the answer
    let second = world.hook();
    world.run_to(20_000);
    let answers: Vec<_> = world.answers.iter().map(|answered| (answered.caller, answered.at)).collect();
    assert_eq!(answers, [(first, at(3000)), (second, at(12_000))]);
    assert_eq!(world.answers[1].verdict.held_by.quiet_ms, 2000, "nothing of the first drain is left");
    assert_eq!((world.answers[1].reason(), world.core.drains_ended()), (Reason::Quiet, 2));
}
