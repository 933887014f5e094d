//! A rollout loses no connection: the hook holds the server until the last SYN. `cargo xtask prove rollout` shows it
//! with full numbers.

use std::{thread, time::Duration};

use lastsyn_tests::prove::rollout::{Plan, Round};

/// A round that is shorter than those of the proof, and no less able to fail.
fn short(hook: bool) -> Plan {
    Plan { move_after: Duration::from_millis(1200), ..Plan::full(hook) }
}

#[test]
fn a_rollout_loses_no_connection_and_without_the_hook_it_does() {
    let plans = [true, true, false].map(short);
    let rounds: Vec<Round> = thread::scope(|scope| {
        let running: Vec<_> = plans.iter().map(|plan| scope.spawn(|| plan.run())).collect();
        running.into_iter().map(|round| round.join().unwrap().unwrap()).collect()
    });
    for (plan, round) in plans.iter().zip(&rounds) {
        round.check(plan).unwrap();
        let summary = round.summary();
        if plan.hook {
            assert_eq!(summary.lost(), 0, "{summary}");
        } else {
            assert!(summary.refused >= 20, "{summary}");
        }
    }
}
