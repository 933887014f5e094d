//! E1: no drain ends before `minWait`.

use super::{
    truth::ms,
    world::{World, at, settings},
};
use crate::core::{settings::Settings, verdict::Condition, verdict::Reason};

#[test]
fn e1_a_quiet_drain_ends_at_min_wait_and_not_before() {
    let mut world = World::at_rest(Settings { min_wait: ms(5000), ..settings() });
    world.hook();
    world.run_to(4999);
    assert!(world.answers.is_empty());
    assert_eq!(world.holding(), [Condition::Floor]);
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(5000), Reason::Quiet));
    assert_eq!((answered.verdict.held_by.floor_ms, answered.verdict.held_by.quiet_ms), (5000, 2000));
}

#[test]
fn e1_the_evidence_is_read_again_at_min_wait() {
    let mut world = World::at_rest(Settings { min_wait: ms(5000), ..settings() });
    world.hook();
    world.run_to(4000).connect(80);
    assert_eq!(world.run_out().at, at(6000));
}

#[test]
fn e1_a_min_wait_as_long_as_the_bound_ends_at_the_bound() {
    let mut world = World::at_rest(Settings { min_wait: ms(20_000), ..settings() });
    world.hook();
    let answered = world.run_out();
    assert_eq!((answered.at, answered.reason()), (at(20_000), Reason::Bound));
    assert_eq!(answered.verdict.holding, [Condition::Floor]);
}
