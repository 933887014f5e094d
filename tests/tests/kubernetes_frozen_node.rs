//! A node that has not heard of the withdrawal keeps the drain: its clients are served. `cargo xtask prove frozen-node` shows
//! it with full numbers.

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    kubernetes::Mode,
    prove::frozen_node::{drain, up},
};
use serde_json::Value;

/// A source in a verdict.
struct Source {
    node: Option<String>,
    family: String,
    since_withdrawal: Option<u64>,
}

fn sources(verdict: &Value) -> Vec<Source> {
    let list = verdict.pointer("/sources/list").and_then(Value::as_array).cloned().unwrap_or_default();
    let source = |source: &Value| Source {
        node: source.get("node").and_then(Value::as_str).map(str::to_owned),
        family: source.get("family").and_then(Value::as_str).unwrap_or_default().to_owned(),
        since_withdrawal: source.get("sinceWithdrawal").and_then(Value::as_u64),
    };
    list.iter().map(source).collect()
}

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
    // Who still sent is named, over both families: as many as came to the withdrawn pod.
    let node = scene.cluster.nodes().last().context("a cluster has nodes")?.name();
    let told = sources(&routing.ended.verdict);
    let of = |family: &str| -> u64 {
        let of_node = |source: &&Source| source.node.as_deref() == Some(node) && source.family == family;
        told.iter().filter(of_node).filter_map(|source| source.since_withdrawal).sum()
    };
    ensure!(of("IPv4") >= 1 && of("IPv6") >= 1, "{:#}", routing.ended.verdict);
    ensure!(of("IPv4") + of("IPv6") == routing.summary().served_by("routing"), "{:#}", routing.ended.verdict);
    ensure!(told.iter().all(|source| source.node.is_some()), "{:#}", routing.ended.verdict);
    Ok(())
}
