//! A node that has not heard of the withdrawal, whatever its kube-proxy says of itself, confirms nothing: neither with the
//! stamp of a start, nor cut off from the API server. Where the slices alone stand still, what is assumed is named.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig,
    kubernetes::{ClusterConfig, Ended, Mode, Node, PORT, Scene, ServiceSpec, Workload},
    prove::wait_until,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const HOOK: Duration = Duration::from_mins(1);
/// How long a node's slices stand still.
const CUT: Duration = Duration::from_secs(20);
/// `routing.watchLag` where nothing else is configured.
const WATCH_LAG: Duration = Duration::from_secs(2);

/// A cluster whose last node sees the API server through a proxy that can hold back a resource.
fn scene(mode: Mode) -> Result<Scene> {
    let config = ClusterConfig { mode, watch_proxy_on: Some(2), ..ClusterConfig::default() };
    Scene::up(&config, |service| service)
}

fn last(scene: &Scene) -> Result<&Node> {
    scene.cluster.nodes().last().context("a cluster has nodes")
}

/// Whether the rules of a node, over any family, lead to a pod.
fn routes(node: &Node, workload: &Workload) -> Result<bool> {
    Ok(workload
        .pod
        .endpoints(PORT)
        .into_iter()
        .map(|to| node.routes_to(to))
        .collect::<Result<Vec<_>>>()?
        .contains(&true))
}

/// That a verdict does not claim that a node had the withdrawal, and names it.
fn names_and_does_not_claim(ended: &Ended, node: &Node) -> Result<()> {
    ensure!(["unverified", "bound"].contains(&ended.reason()), "{}", ended.verdict);
    let named = match ended.reason() {
        "unverified" => ended.verdict.get("notObserved"),
        _ => Some(&ended.verdict),
    };
    ensure!(named.is_some_and(|named| named.to_string().contains(node.name())), "{}", ended.verdict);
    Ok(())
}

#[test]
fn nftables_the_stamp_of_a_start_confirms_nothing() {
    the_stamp_of_a_start_confirms_nothing(Mode::Nftables).unwrap();
}

#[test]
fn iptables_the_stamp_of_a_start_confirms_nothing() {
    the_stamp_of_a_start_confirms_nothing(Mode::Iptables).unwrap();
}

fn the_stamp_of_a_start_confirms_nothing(mode: Mode) -> Result<()> {
    let scene = scene(mode)?;
    let workload = scene.workload(0, "drains", AgentConfig::default())?;
    let (cluster, node) = (&scene.cluster, last(&scene)?);
    let before = node.proxy().stamp(cluster.outside(), "IPv4")?;

    node.proxy().kill()?;
    cluster.watch_proxy()?.stall("endpointslices");
    let stopping = workload.delete()?;
    node.proxy().restart()?;
    node.proxy().await_status(cluster.outside())?;
    let answer = node.proxy().livez(cluster.outside())?;
    ensure!(answer.pointer("/status/IPv4/healthy") == Some(&Value::Bool(true)), "{answer}");
    ensure!(node.proxy().stamp(cluster.outside(), "IPv4")? > before, "{answer}");
    ensure!(routes(node, &workload)?, "the rules of {} are not the old ones", node.name());

    let ended = stopping.finish(HOOK)?;
    ensure!(routes(node, &workload)?, "the rules of {} are not the old ones", node.name());
    names_and_does_not_claim(&ended, node)
}

#[test]
fn nftables_a_node_that_is_cut_off_confirms_nothing() {
    a_node_that_is_cut_off_confirms_nothing(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_node_that_is_cut_off_confirms_nothing() {
    a_node_that_is_cut_off_confirms_nothing(Mode::Iptables).unwrap();
}

fn a_node_that_is_cut_off_confirms_nothing(mode: Mode) -> Result<()> {
    let scene = scene(mode)?;
    let workload = scene.workload(0, "drains", AgentConfig::default())?;
    let node = scene.cluster.nodes().get(1).context("a second node")?;

    node.cut()?;
    let stopping = workload.delete()?;
    let deleted_at = stopping.deleted_at;
    // The others' stamps move.
    for number in 0..4 {
        wait_until(deleted_at, Duration::from_secs(number))?;
        scene.cluster.service(&ServiceSpec::new(format!("other-{number}"), "other", PORT))?;
    }
    let answer = node.proxy().livez(scene.cluster.outside())?;
    ensure!(answer.pointer("/status/IPv4/healthy") == Some(&Value::Bool(true)), "{answer}");
    let ended = stopping.finish(HOOK)?;
    ensure!(routes(node, &workload)?, "the rules of {} are not the old ones", node.name());
    names_and_does_not_claim(&ended, node)
}

#[test]
fn nftables_what_confirms_a_node_whose_slices_stand_still_names_what_it_assumes() {
    what_confirms_a_node_whose_slices_stand_still_names_what_it_assumes(Mode::Nftables).unwrap();
}

#[test]
fn iptables_what_confirms_a_node_whose_slices_stand_still_names_what_it_assumes() {
    what_confirms_a_node_whose_slices_stand_still_names_what_it_assumes(Mode::Iptables).unwrap();
}

/// They stand still for 20 s, in which the drain ends.
fn what_confirms_a_node_whose_slices_stand_still_names_what_it_assumes(mode: Mode) -> Result<()> {
    let scene = scene(mode)?;
    let workload = scene.workload(0, "drains", AgentConfig::default())?;
    let (cluster, node) = (&scene.cluster, last(&scene)?);

    cluster.watch_proxy()?.stall("endpointslices");
    let stopping = workload.delete()?;
    let deleted_at = stopping.deleted_at;
    // Services go on, so the node writes rules and stamps them, and has not heard of the withdrawal.
    let mut stamps = vec![node.proxy().stamp(cluster.outside(), "IPv4")?];
    let mut holds = true;
    for number in 0..CUT.as_secs() {
        wait_until(deleted_at, Duration::from_secs(number))?;
        cluster.service(&ServiceSpec::new(format!("other-{number}"), "other", PORT))?;
        stamps.push(node.proxy().stamp(cluster.outside(), "IPv4")?);
        holds = stopping.holds()?;
    }
    stamps.dedup();
    ensure!(stamps.len() >= 10, "{stamps:?}");
    ensure!(!holds, "the drain did not end in the {CUT:?}");
    ensure!(routes(node, &workload)?, "the rules of {} are not the old ones", node.name());
    let ended = stopping.finish(SOON)?;

    // It may be wrong where its assumption is; then it must have waited for that, and say so.
    let held = ended.verdict.get("durationMs").and_then(Value::as_u64).context("a duration")?;
    ensure!(Duration::from_millis(held) > WATCH_LAG, "{}", ended.verdict);
    ensure!(ended.reason() != "routed-away", "{}", ended.verdict);
    let assumes = ended.verdict.get("assumes").map(Value::to_string).unwrap_or_default();
    ensure!(ended.reason() != "synced" || assumes.contains("watchLag<=2s"), "{}", ended.verdict);
    Ok(())
}
