//! On a real kubelet: a Deployment with the agent as native sidecar is restarted without a lost connection, and without the
//! hook it is not. `cargo xtask prove restarts` shows it with full numbers.

use anyhow::{Result, ensure};
use lastsyn_tests::{
    kubernetes::Mode,
    prove::restarts::{Plan, Round},
};

fn restart(hook: bool) -> Result<Round> {
    Plan { mode: Mode::Nftables, hook, restarts: 2, per_second: 15 }.run()
}

#[test]
fn a_restarted_deployment_loses_no_connection() {
    let round = restart(true).unwrap();
    let summary = round.summary();
    assert_eq!(summary.lost(), 0, "{summary}: {:?}", round.reports);
    // The first pod and its two successors.
    assert_eq!(summary.served.len(), 3, "{summary}");
    assert_eq!(round.reports.len(), 2);
    round.check_order().unwrap();
    for report in &round.reports {
        assert!(["synced", "unverified"].contains(&report["reason"].as_str().unwrap()), "{report}");
    }
}

#[test]
fn without_the_hook_it_does() -> Result<()> {
    let summary = restart(false)?.summary();
    ensure!(summary.refused > 0, "{summary}");
    Ok(())
}
