//! C14: a node that still sends though the pod is withdrawn is named, and what it has confirmed does not count.

use std::time::Duration;

use lastsyn_tests::{
    AgentConfig, await_condition, connect_once,
    kubernetes::{ClusterConfig, PORT, Scene, ServiceSpec},
    monotonic_now,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const HOOK: Duration = Duration::from_mins(1);
/// `routing.watchLag` where nothing else is configured: nothing counts before that.
const WATCH_LAG: u64 = 2_000_000_000;
/// Between two writes of other Services.
const CHURN: u64 = 700_000_000;

/// What a status or verdict says came from a node since the withdrawal, over a family.
fn since_withdrawal(of: &Value, node: &str, family: &str) -> u64 {
    let list = of.pointer("/sources/list").and_then(Value::as_array).cloned().unwrap_or_default();
    let of_node = |source: &&Value| source["node"] == *node && source["family"] == *family;
    list.iter().filter(of_node).filter_map(|source| source["sinceWithdrawal"].as_u64()).sum()
}

#[test]
fn c14_a_node_that_still_sends_is_named_and_contradicts_what_it_confirmed() {
    let scene =
        Scene::up(&ClusterConfig { watch_proxy_on: Some(2), ..ClusterConfig::default() }, |service| service).unwrap();
    let config = AgentConfig::default().env("LASTSYN_DRAIN_MAX_WAIT", "50s");
    let workload = scene.workload(0, "drains", config).unwrap();
    let (cluster, node) = (&scene.cluster, scene.cluster.nodes().last().unwrap());

    // The node's slices stand still and its Services go on: it stamps rules that do not have the withdrawal.
    cluster.watch_proxy().unwrap().stall("endpointslices");
    let stopping = workload.delete().unwrap();
    let (begun, mut writes) = (monotonic_now(), 0);
    let mut targets = scene.service.cluster().into_iter().cycle();
    let contradicted = format!("node {} sent a new connection", node.name());
    await_condition("a contradiction", HOOK, || {
        if monotonic_now() > begun + writes * CHURN {
            cluster.service(&ServiceSpec::new(format!("other-{writes}"), "other", PORT)).unwrap();
            writes += 1;
        }
        connect_once(node.host(), targets.next().unwrap(), SOON);
        assert!(stopping.holds().unwrap(), "clients still come");
        workload.agent.status().unwrap()["journal"].to_string().contains(&contradicted)
    })
    .unwrap();
    let contradicted_at = monotonic_now();

    let status = workload.agent.status_of_now().unwrap();
    for family in ["IPv4", "IPv6"] {
        assert!(since_withdrawal(&status, node.name(), family) >= 1, "{family}: {status:#}");
        let other = cluster.nodes()[1].name();
        assert_eq!(since_withdrawal(&status, other, family), 0, "{status:#}");
    }
    let line = format!("node {} still sends over IPv", node.name());
    workload.agent.process().wait_for_line(&line, SOON).unwrap();

    cluster.watch_proxy().unwrap().release();
    let ended = stopping.finish(HOOK).unwrap();
    assert!(ended.by_evidence_or_wait(), "{:#}", ended.verdict);
    assert!(ended.at > contradicted_at + WATCH_LAG, "what was confirmed before still counted: {:#}", ended.verdict);
    assert!(since_withdrawal(&ended.verdict, node.name(), "IPv4") >= 1, "{:#}", ended.verdict);
}
