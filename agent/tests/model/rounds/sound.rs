//! The fence as it is built: no violation in the whole world, and every drain is told somewhere in it.

use super::{
    Case, Judge, Limits, words,
    world::{BOTH, SOUND},
};
use crate::search::{Told, deep, run};

fn holds(name: &str, bounded: Limits, larger: Limits) {
    let case = Case { judge: Judge::Rounds, limits: if deep() { larger } else { bounded } };
    let found = run(name, case, &told(case));
    assert_eq!(found.violation, None);
    assert!(found.confirms, "a fence that never tells all drains would be sound");
}

pub(super) fn told(case: Case) -> Told<Case> {
    Told {
        rule: case.rule_in_words(),
        assumes: vec!["firstList"],
        world: case.world_in_words(),
        sound: SOUND,
        confirms: BOTH,
        step: words::step,
    }
}

const NONE: Limits = Limits { ticks: 2, drains: 2, markers: 3, restarts: 0, relists: 0, lost: 0, leaders: 0 };

#[test]
fn c4_rounds_are_shared_between_drains() {
    holds("c4_rounds_are_shared_between_drains", NONE, Limits { ticks: 3, markers: 4, ..NONE });
}

#[test]
fn c4_rounds_over_a_relist() {
    let bounded = Limits { drains: 1, markers: 2, relists: 1, ..NONE };
    holds("c4_rounds_over_a_relist", bounded, Limits { relists: 2, drains: 2, markers: 3, ..bounded });
}

#[test]
fn c4_rounds_over_a_restart() {
    let bounded = Limits { ticks: 3, drains: 1, markers: 3, restarts: 1, ..NONE };
    holds("c4_rounds_over_a_restart", bounded, Limits { ticks: 4, markers: 4, drains: 2, ..bounded });
}

#[test]
fn c4_rounds_when_another_writer_takes_over() {
    let bounded = Limits { drains: 1, markers: 4, leaders: 1, ..NONE };
    holds("c4_rounds_when_another_writer_takes_over", bounded, Limits { relists: 1, ticks: 3, ..bounded });
}

#[test]
fn c4_rounds_with_answers_that_are_lost() {
    let bounded = Limits { drains: 1, markers: 4, lost: 1, relists: 1, ..NONE };
    holds("c4_rounds_with_answers_that_are_lost", bounded, Limits { drains: 2, ticks: 3, ..bounded });
}
