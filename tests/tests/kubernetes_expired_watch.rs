//! An API server that has forgotten where a watch was (410): the agent lists anew, which is one step. What it missed in between
//! it learns then, and nothing that a node has shown before counts (C10).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, await_condition,
    kubernetes::{ClusterConfig, Mode, PORT, STAYS, Scene, Workload},
    monotonic_now,
    prove::wait_until,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const HOOK: Duration = Duration::from_mins(1);
/// `routing.watchLag` where nothing else is configured.
const WATCH_LAG: Duration = Duration::from_secs(2);
/// Longer than every node needs, and than the quiet period.
const MISSED: Duration = Duration::from_secs(5);
const SLICES: &str = "endpointslices";

/// Whether the agent's journal has said something.
fn has_said(workload: &Workload, what: &str) -> bool {
    workload
        .agent
        .status()
        .is_ok_and(|status| status.get("journal").is_some_and(|lines| lines.to_string().contains(what)))
}

fn holds_for_routing(workload: &Workload) -> Result<()> {
    let status = workload.agent.status_of_now()?;
    let holding = status.pointer("/drain/holding").map(ToString::to_string).unwrap_or_default();
    ensure!(holding.contains("routing"), "{status:#}");
    Ok(())
}

fn a_withdrawal_that_the_watch_missed_is_learnt_by_the_list(mode: Mode) -> Result<()> {
    let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
    let (access, proxy) = scene.cluster.watched(&scene.access, 0)?;
    let workload = scene.workload_with(0, "drains", AgentConfig::default(), &access)?;

    let stopping = workload.stop(true)?;
    await_condition("the first list", SOON, || has_said(&workload, "leads to the pod"))?;
    proxy.stall(SLICES);
    workload.pod.delete()?;
    // All nodes have it, and have shown all that they will.
    scene.cluster.await_routes(&workload.pod, PORT, false)?;
    wait_until(monotonic_now(), MISSED)?;
    ensure!(stopping.holds()?, "the agent cannot know of the withdrawal");
    holds_for_routing(&workload)?;

    let expired_at = monotonic_now();
    proxy.expire(SLICES);
    let ended = stopping.finish(HOOK)?;
    ensure!(!proxy.is_expired(), "it was not listed again");
    ensure!(ended.by_evidence_or_wait(), "{:#}", ended.verdict);
    let after = Duration::from_nanos(ended.at.saturating_sub(expired_at));
    ensure!(after > WATCH_LAG, "what nodes had shown before counted, {after:?}: {:#}", ended.verdict);
    // Both families are withdrawn by one step.
    let services = ended.verdict.pointer("/routing/services").and_then(Value::as_array).context("no services")?;
    let since: Vec<_> = services.iter().map(|service| (service.get("state"), service.get("sinceMs"))).collect();
    ensure!(since.len() == 2 && since.first() == since.last(), "{:#}", ended.verdict);
    Ok(())
}

#[test]
fn c10_nftables_a_withdrawal_that_the_watch_missed_is_learnt_by_the_list() {
    a_withdrawal_that_the_watch_missed_is_learnt_by_the_list(Mode::Nftables).unwrap();
}

#[test]
fn c10_iptables_a_withdrawal_that_the_watch_missed_is_learnt_by_the_list() {
    a_withdrawal_that_the_watch_missed_is_learnt_by_the_list(Mode::Iptables).unwrap();
}

#[test]
fn c10_an_un_withdrawal_that_the_watch_missed_holds_the_drain() -> Result<()> {
    let scene = Scene::up(&ClusterConfig::default(), |service| service)?;
    let (access, proxy) = scene.cluster.watched(&scene.access, 0)?;
    let config = AgentConfig::default().env("LASTSYN_DRAIN_MIN_WAIT", "4s").env("LASTSYN_DRAIN_MAX_WAIT", "50s");
    let workload = scene.workload_with(0, "drains", config, &access)?;

    let stopping = workload.delete()?;
    await_condition("the withdrawal", SOON, || has_said(&workload, "leads to the pod no longer"))?;
    // The other endpoint goes: kube-proxies fall back on the one that terminates, and the agent hears nothing of it.
    proxy.stall(SLICES);
    scene.stays.set_ready(false)?;
    await_condition("the fallback", SOON, || {
        scene.cluster.endpoints("web").is_ok_and(|all| all.iter().all(|one| !one.ready))
    })?;
    proxy.expire(SLICES);
    await_condition("the list", SOON, || !proxy.is_expired())?;
    wait_until(stopping.called_at, WATCH_LAG * 6)?;
    ensure!(stopping.holds()?, "{STAYS} is not ready, and nodes fall back on the pod");
    holds_for_routing(&workload)?;

    let ready_again_at = monotonic_now();
    scene.stays.set_ready(true)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(ended.by_evidence_or_wait(), "{:#}", ended.verdict);
    let after = Duration::from_nanos(ended.at.saturating_sub(ready_again_at));
    ensure!(after > WATCH_LAG, "{after:?}: {:#}", ended.verdict);
    Ok(())
}
