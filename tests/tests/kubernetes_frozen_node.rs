//! A node that has not heard of the withdrawal keeps the drain: its clients are served. `cargo xtask prove frozen-node` shows
//! it with full numbers.

use anyhow::{Result, ensure};
use lastsyn_tests::{
    kubernetes::Mode,
    prove::frozen_node::{drain, up},
};

#[test]
fn nftables_a_node_that_stands_still_is_waited_for_and_with_quiet_alone_is_not() {
    a_node_that_stands_still_is_waited_for(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_node_that_stands_still_is_waited_for_and_with_quiet_alone_is_not() {
    a_node_that_stands_still_is_waited_for(Mode::Iptables).unwrap();
}

fn a_node_that_stands_still_is_waited_for(mode: Mode) -> Result<()> {
    let scene = up(mode)?;

    let quiet = drain(&scene, "quiet", false)?;
    quiet.check()?;
    ensure!(quiet.ended.reason() == "quiet", "{}", quiet.ended.verdict);
    // About half of them went to the pod, and its server was gone.
    ensure!(quiet.summary().refused >= 10, "{}", quiet.summary());

    let routing = drain(&scene, "routing", true)?;
    routing.check()?;
    ensure!(routing.summary().lost() == 0, "{}: {}", routing.summary(), routing.ended.verdict);
    ensure!(routing.summary().served_by("routing") >= 10, "{}", routing.summary());
    ensure!(routing.ended.by_evidence_or_wait(), "{}", routing.ended.verdict);
    Ok(())
}
