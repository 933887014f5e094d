//! The agent in a pod of a real Kubernetes: what its verdict says of routing is what the nodes' rules do.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, agent_log, await_condition,
    kubernetes::{Cluster, Mode, Node, PORT, PodSpec, Right, ServiceSpec, Workload},
    openmetrics::Metrics,
    process::Stream,
};
use serde_json::Value;

/// No drain lasts longer: its bound is 20 s.
const BOUND: Duration = Duration::from_secs(30);

/// Two pods behind a Service, and the drain of the first.
fn drain(mode: Mode, rights: &[Right]) -> Result<(Cluster, Value)> {
    let cluster = Cluster::up(mode)?;
    let access = cluster.access("web", rights)?;
    cluster.service(&ServiceSpec::new("web", "web", PORT))?;
    let start = |node, name: &str| {
        Workload::start(&cluster, node, &PodSpec::new(name, "web", PORT), Some(&access), AgentConfig::default())
    };
    let (leaves, stays) = (start(0, "leaves")?, start(1, "stays")?);
    for workload in [&leaves, &stays] {
        cluster.await_routes(&workload.pod, PORT, true)?;
    }
    every_node_writes_its_rules(&cluster)?;
    let stopping = leaves.delete()?;
    stopping.verdict(BOUND)?;
    measured(&leaves.agent)?;
    let ended = stopping.finish(BOUND)?;
    let said = agent_log::said(&leaves.agent.process().text(Stream::Error));
    ensure!(said.len() <= 10, "{said:#?}");
    eprintln!("{} after {:?}: {:#}", ended.reason(), ended.took, ended.verdict);
    if ended.reason() == "synced" {
        cluster.await_routes(&leaves.pod, PORT, false)?;
    }
    drop((leaves, stays));
    Ok((cluster, ended.verdict))
}

/// What the drain cost and met, as the agent counts it.
fn measured(agent: &Agent) -> Result<()> {
    let metrics = Metrics::parse(&agent.metrics()?)?;
    let at_least = |sample: &str, least: f64| {
        ensure!(metrics.value(sample) >= Some(least), "{sample}: {metrics:#?}");
        Ok(())
    };
    at_least("lastsyn_healthz_poll_duration_seconds_count", 6.0)?;
    // The consistent read before the end, and what it shows: no more than the watch had told within the time that it is given.
    at_least("lastsyn_watch_lag_seconds_count", 1.0)?;
    let of = |sample: &str| metrics.value(&format!("lastsyn_watch_lag_seconds_{sample}"));
    ensure!(of("bucket{le=\"2.0\"}") == of("count"), "{metrics:#?}");
    at_least(r#"lastsyn_map_reads_total{purpose="report"}"#, 1.0)?;
    Ok(())
}

/// What a node shows is new only to who has asked it before. One that is idle may write the withdrawal before the agent first asks,
/// and is then only waited for; one that has just written waits `minSyncPeriod`, and the agent asks first.
fn every_node_writes_its_rules(cluster: &Cluster) -> Result<()> {
    let stamps = || -> Result<Vec<String>> {
        let of = |node: &Node, family| node.proxy().stamp(cluster.outside(), family);
        cluster.nodes().iter().flat_map(|node| ["IPv4", "IPv6"].map(|family| of(node, family))).collect()
    };
    let before = stamps()?;
    cluster.service(&ServiceSpec::new("other", "other", PORT))?;
    await_condition("rules that every node has written anew", BOUND, || {
        stamps().is_ok_and(|stamps| stamps.iter().zip(&before).all(|(now, before)| now != before))
    })
}

#[test]
fn a_drain_ends_by_what_every_node_has_shown() -> Result<()> {
    for mode in [Mode::Nftables, Mode::Iptables] {
        let (_cluster, verdict) = drain(mode, &Right::ALL)?;
        ensure!(verdict["reason"] == "synced", "{verdict:#}");
        let nodes = &verdict["routing"]["nodes"];
        ensure!(nodes["total"] == 6 && nodes["assumed"] == 6, "{verdict:#}");
        let services = verdict["routing"]["services"].as_array().context("Services")?;
        ensure!(services.len() == 2 && services.iter().all(|one| one["state"] == "withdrawn"), "{verdict:#}");
        ensure!(verdict["notObserved"].as_array().is_some_and(Vec::is_empty), "{verdict:#}");
    }
    Ok(())
}
