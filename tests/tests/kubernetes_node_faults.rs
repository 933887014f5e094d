//! A node that hears of the withdrawal and writes its rules late, or not at all, and one that hears of it late: whatever the
//! drain claims, that node's rules do.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, await_condition,
    kubernetes::{ClusterConfig, Ended, Mode, Node, PORT, PodSpec, Scene, ServiceSpec, Stopping, Workload, Writes},
    monotonic_now,
    prove::wait_until,
};

const HOOK: Duration = Duration::from_mins(1);
/// How late a write is: longer than `routing.syncTime` where nothing else is configured.
const LATE: Duration = Duration::from_secs(3);
/// As the operator of such nodes has to say it.
const SYNC_TIME: &str = "5s";
/// The same of nodes whose watch stands still for [`LATE`] and expires then.
const WATCH_LAG: &str = "8s";

fn scene(mode: Mode) -> Result<Scene> {
    let config = ClusterConfig { mode, rule_writer_on: Some(2), ..ClusterConfig::default() };
    Scene::up(&config, |service| service)
}

/// A pod whose drain may take as long as such bounds and a slow machine need.
fn patient(scene: &Scene, config: AgentConfig) -> Result<Workload> {
    let config = config.env("LASTSYN_ROUTING_SYNC_TIME", SYNC_TIME).env("LASTSYN_DRAIN_MAX_WAIT", "50s");
    let spec = PodSpec { grace_seconds: 60, ..PodSpec::new("drains", "web", PORT) };
    let workload = Workload::start(&scene.cluster, 0, &spec, Some(&scene.access), config)?;
    scene.await_routes(&workload.pod)?;
    Ok(workload)
}

fn delete(workload: &Workload) -> Result<Stopping<'_>> {
    workload.delete_with(&["--max-wait", "55s"])
}

fn last(scene: &Scene) -> Result<&Node> {
    scene.cluster.nodes().last().context("a cluster has nodes")
}

/// Whether the rules of a node, over any family, lead to a pod.
fn routes(node: &Node, workload: &Workload) -> Result<bool> {
    let look = |to| node.routes_to(to);
    Ok(workload.pod.endpoints(PORT).into_iter().map(look).collect::<Result<Vec<_>>>()?.contains(&true))
}

/// Waits for the hook while other Services keep every node writing, and looks at a node's rules at once.
fn hold_under_churn(scene: &Scene, stopping: &Stopping<'_>, node: &Node, workload: &Workload) -> Result<bool> {
    let begun = monotonic_now();
    let mut number = 0;
    await_condition("the hook's end", HOOK, || -> Option<Result<()>> {
        let due = begun + number * 700_000_000;
        if monotonic_now() >= due {
            let spec = ServiceSpec::new(format!("other-{number}"), "other", PORT);
            if let Err(error) = scene.cluster.service(&spec) {
                return Some(Err(error));
            }
            number += 1;
        }
        match stopping.holds() {
            Ok(true) => None,
            Ok(false) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        }
    })??;
    routes(node, workload)
}

fn claims(ended: &Ended) -> bool {
    ["synced", "routed-away"].contains(&ended.reason())
}

fn a_node_that_writes_late_is_waited_for(mode: Mode) -> Result<()> {
    let scene = scene(mode)?;
    let workload = patient(&scene, AgentConfig::default())?;
    let node = last(&scene)?;
    scene.cluster.rule_writer()?.let_it(Writes::Late(LATE))?;
    // A write is under way when the withdrawal comes: its end is stamped after that, and the rules are the old ones.
    scene.cluster.service(&ServiceSpec::new("first", "other", PORT))?;
    let stopping = delete(&workload)?;
    wait_until(stopping.deleted_at, LATE)?;
    ensure!(routes(node, &workload)?, "the rules were not late: nothing is shown");
    let routed = hold_under_churn(&scene, &stopping, node, &workload)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(ended.by_evidence_or_wait() && !routed, "routed: {routed}, {:#}", ended.verdict);
    Ok(())
}

#[test]
fn nftables_a_node_that_writes_late_is_waited_for() {
    a_node_that_writes_late_is_waited_for(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_node_that_writes_late_is_waited_for() {
    a_node_that_writes_late_is_waited_for(Mode::Iptables).unwrap();
}

/// The API server has forgotten where the node's watch was (410): kube-proxy lists anew, and hears of the withdrawal by that.
fn a_node_whose_watch_expires_confirms_only_by_its_list(mode: Mode) -> Result<()> {
    let config = ClusterConfig { mode, watch_proxy_on: Some(2), ..ClusterConfig::default() };
    let scene = Scene::up(&config, |service| service)?;
    // The node hears of it later than is assumed where nothing else is configured.
    let workload = patient(&scene, AgentConfig::default().env("LASTSYN_ROUTING_WATCH_LAG", WATCH_LAG))?;
    let (node, proxy) = (last(&scene)?, scene.cluster.watch_proxy()?);
    proxy.stall("endpointslices");
    let stopping = delete(&workload)?;
    wait_until(stopping.deleted_at, LATE)?;
    ensure!(routes(node, &workload)? && stopping.holds()?, "the node has heard of it, or is not waited for");
    let expired_at = monotonic_now();
    proxy.expire("endpointslices");
    let routed = hold_under_churn(&scene, &stopping, node, &workload)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(!proxy.is_expired(), "the node has not listed again: nothing is shown");
    ensure!(ended.by_evidence_or_wait() && !routed, "routed: {routed}, {:#}", ended.verdict);
    ensure!(ended.at > expired_at, "{:#}", ended.verdict);
    Ok(())
}

#[test]
fn nftables_a_node_whose_watch_expires_confirms_only_by_its_list() {
    a_node_whose_watch_expires_confirms_only_by_its_list(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_node_whose_watch_expires_confirms_only_by_its_list() {
    a_node_whose_watch_expires_confirms_only_by_its_list(Mode::Iptables).unwrap();
}

#[test]
fn a_node_whose_writes_fail_confirms_nothing() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let workload = scene.workload(0, "drains", AgentConfig::default())?;
    let node = last(&scene)?;
    scene.cluster.rule_writer()?.let_it(Writes::Fail)?;
    let stopping = workload.delete()?;
    let routed = hold_under_churn(&scene, &stopping, node, &workload)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(routed, "the rules were written: nothing is shown");
    ensure!(!claims(&ended) && ended.verdict.to_string().contains(node.name()), "{:#}", ended.verdict);
    Ok(())
}

#[test]
fn a_node_that_was_cut_off_and_hears_of_it_late_confirms_only_then() -> Result<()> {
    /// What is lost meanwhile is sent again within as long as it was lost (RFC 6298, 5.5): the node hears of it within
    /// [`WATCH_LAG`].
    const CUT: Duration = Duration::from_secs(3);
    let scene = scene(Mode::Nftables)?;
    let workload = patient(&scene, AgentConfig::default().env("LASTSYN_ROUTING_WATCH_LAG", WATCH_LAG))?;
    let node = scene.cluster.nodes().get(1).context("a second node")?;
    node.cut()?;
    let stopping = delete(&workload)?;
    wait_until(stopping.deleted_at, CUT)?;
    ensure!(routes(node, &workload)? && stopping.holds()?, "the node has heard of it, or is not waited for");
    let healed_at = monotonic_now();
    node.heal()?;
    let routed = hold_under_churn(&scene, &stopping, node, &workload)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(!(claims(&ended) && routed), "{:#}", ended.verdict);
    ensure!(ended.at > healed_at, "it ended while the node was cut off: {:#}", ended.verdict);
    Ok(())
}
