//! A rolling replacement behind a `ClusterIP`, a `NodePort` and a `LoadBalancer` with the policy `Local` loses no connection.
//! `cargo xtask prove replacement` shows it with full numbers.

use std::time::Duration;

use anyhow::{Result, ensure};
use lastsyn_tests::{kubernetes::Mode, prove::replacement::Plan};

/// A round that is lighter than those of the proof, and no less able to fail.
fn replaces_without_loss(mode: Mode, hook: bool) -> Result<()> {
    let plan = Plan { mode, hook, per_second: 25, pause: Duration::ZERO };
    let round = plan.run()?;
    let summary = round.summary();
    if hook {
        round.check(&plan)?;
        ensure!(summary.lost() == 0, "{summary}\n{}", round.to_json(1, &plan));
        for ended in &round.ended {
            ensure!(ended.by_evidence_or_wait(), "{}", ended.verdict);
        }
    } else {
        ensure!(summary.refused > 0, "{summary}");
    }
    Ok(())
}

#[test]
fn nftables_a_replacement_loses_no_connection() {
    replaces_without_loss(Mode::Nftables, true).unwrap();
}

#[test]
fn iptables_a_replacement_loses_no_connection() {
    replaces_without_loss(Mode::Iptables, true).unwrap();
}

#[test]
fn without_the_hook_it_does() {
    replaces_without_loss(Mode::Nftables, false).unwrap();
}
