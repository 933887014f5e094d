//! Services that lead their clients to near endpoints (`trafficDistribution`, KEP-4444 and KEP-3015): nodes whose rules never led
//! to the pod have as much to show as the pod's own, and where the pod is the only near one its clients go elsewhere in time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, Outcome, PacedClient, await_condition, connect_once,
    kubernetes::{ClusterConfig, KubePod, Mode, Node, PORT, Scene, ServiceSpec},
};

const SOON: Duration = Duration::from_secs(20);
const HOOK: Duration = Duration::from_mins(1);
const PER_SECOND: u32 = 50;

#[test]
fn nftables_the_only_near_pod_is_drained() -> Result<()> {
    the_only_near_pod_is_drained(Mode::Nftables)
}

#[test]
fn iptables_the_only_near_pod_is_drained() -> Result<()> {
    the_only_near_pod_is_drained(Mode::Iptables)
}

/// Each node is a zone of its own. The pod is on the first, the one that stays on the second, and none on the third.
fn the_only_near_pod_is_drained(mode: Mode) -> Result<()> {
    let config = ClusterConfig { mode, ..ClusterConfig::default() };
    let scene = Scene::up(&config, |service| service.distributed("PreferSameZone"))?;
    let near = scene.cluster.service(&ServiceSpec::new("near", "web", PORT).distributed("PreferSameNode"))?;
    let workload = scene.start(0, "drains", AgentConfig::default())?;
    let [first, second, third] = scene.cluster.nodes() else { anyhow::bail!("not three nodes") };
    for (node, drains, stays) in [(first, true, false), (second, false, true), (third, true, true)] {
        await_condition(&format!("what is near to {}", node.name()), SOON, || {
            leads(node, &workload.pod).is_ok_and(|leads| leads == [drains; 2])
                && leads(node, &scene.stays).is_ok_and(|leads| leads == [stays; 2])
        })?;
    }
    let targets = [scene.service.cluster(), near.cluster()].concat();
    for &target in &targets {
        let attempt = connect_once(first.host(), target, SOON);
        ensure!(attempt.outcome == Outcome::Served { by: "drains".to_owned() }, "{target}: {:?}", attempt.outcome);
    }

    let start = |node: &Node| PacedClient::start_served(node.host(), targets.clone(), PER_SECOND);
    let clients = scene.cluster.nodes().iter().map(start).collect::<Result<Vec<_>>>()?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure!(ended.by_evidence_or_wait(), "{:#}", ended.verdict);
    let nodes = ended.verdict.pointer("/routing/nodes").context("the nodes")?;
    ensure!(nodes.get("total").is_some_and(|total| total == 6), "both families of every node: {nodes}");
    for node in [first, second, third] {
        ensure!(leads(node, &workload.pod)? == [false; 2], "{} still leads to the pod", node.name());
        ensure!(leads(node, &scene.stays)? == [true; 2], "{} leads nowhere", node.name());
    }
    for client in clients {
        let attempts = client.stop()?;
        let lost = attempts.iter().find(|attempt| !matches!(attempt.outcome, Outcome::Served { .. }));
        ensure!(lost.is_none() && !attempts.is_empty(), "{lost:?} of {}", attempts.len());
    }
    Ok(())
}

/// Whether a node's rules lead to a pod, over each family.
fn leads(node: &Node, pod: &KubePod) -> Result<Vec<bool>> {
    pod.endpoints(PORT).into_iter().map(|to| node.routes_to(to)).collect()
}
