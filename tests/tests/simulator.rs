//! Every scenario, at a count that still fails when a rule is broken; `cargo xtask simulate` plays them by the million.

use lastsyn_tests::simulator::{Account, Campaign, Found, Rule, Scenario, Summary, account};

/// Plays some drains; a broken promise is told with the fewest steps that break it.
fn play(scenario: Scenario, drains: u64, rule: Rule) -> Summary {
    Campaign { scenario, first_seed: 0, drains, jobs: 2, rule }.run()
}

/// What was found, as a person reads it.
fn told(summary: &Summary) -> String {
    let Some(Found { scenario, seed, failure }) = &summary.found else { return String::new() };
    let Account { steps, lines, .. } = account(*scenario, *seed, Rule::Core);
    format!("{scenario}, seed {seed}: {failure}\n{}\n\n{}", steps.join("\n"), lines.join("\n"))
}

fn holds(scenario: Scenario, drains: u64) -> Summary {
    let summary = play(scenario, drains, Rule::Core);
    assert!(summary.found.is_none(), "{}", told(&summary));
    assert_eq!(summary.drains, drains);
    summary
}

macro_rules! scenario {
    ($name:ident, $scenario:ident, $drains:expr) => {
        #[test]
        fn $name() {
            let summary = holds(Scenario::$scenario, $drains);
            println!("{summary}");
            // A core that never claims anything would break no promise.
            for reason in ["routed-away", "synced", "unverified", "bound"] {
                assert!(summary.reasons.contains_key(reason), "no drain ended {reason}: {summary}");
            }
        }
    };
}

scenario!(calm_drains_keep_the_promises, Calm, 500);
scenario!(kube_proxies_that_stand_still_break_no_promise, Freeze, 500);
scenario!(kube_proxies_that_restart_break_no_promise, Restart, 900);
scenario!(kube_proxies_that_are_cut_off_break_no_promise, Cut, 500);
scenario!(late_watches_and_long_syncs_are_named, Lag, 500);
scenario!(slices_that_are_written_all_the_time_break_no_promise, Churn, 700);
scenario!(relists_break_no_promise, Relist, 700);
scenario!(policies_and_withdrawals_that_are_taken_back_break_no_promise, Policy, 700);
scenario!(the_fence_is_never_fooled, Fence, 700);
scenario!(load_balancers_are_waited_for, LoadBalancer, 500);
scenario!(wall_clocks_decide_nothing, Clocks, 300);
scenario!(gaps_in_what_the_agent_sees_make_no_drain_shorter, Sensor, 500);
scenario!(everything_at_once_breaks_no_promise, All, 1000);

#[test]
fn in_a_rolling_update_drains_end_by_evidence() {
    let summary = holds(Scenario::RollingUpdate, 60);
    assert!(summary.by_evidence_per_mille() >= 950, "{summary}");
}

#[test]
fn a_newer_stamp_is_no_evidence() {
    for scenario in [Scenario::Calm, Scenario::Restart, Scenario::All] {
        let summary = play(scenario, 200, Rule::NewerStamp);
        let found =
            summary.found.unwrap_or_else(|| panic!("{scenario}: the rule that claims too much got away with it"));
        let told = account(scenario, found.seed, Rule::NewerStamp);
        assert!(told.failure.is_some(), "{scenario}, seed {}: it fails only sometimes", found.seed);
        assert!(told.lines.iter().any(|line| line.contains("ROUTES") || line.contains("FAILURE")), "{:?}", told.lines);
    }
}

#[test]
fn a_seed_is_one_drain() {
    for scenario in Scenario::ALL {
        let [one, other] = [(); 2].map(|()| account(scenario, 17, Rule::Core));
        assert_eq!(one.lines, other.lines, "{scenario}");
        assert!(one.lines.iter().any(|line| line.contains("VERDICT") || line.contains("BOUND")), "{scenario}");
    }
}
