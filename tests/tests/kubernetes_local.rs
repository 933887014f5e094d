//! A Service with the policy `Local`: where the pod is its node's only one, kube-proxy's fallback goes on sending to it, and
//! the drain holds; and the health-check node port's window counts from the zero that was seen.

use std::time::Duration;

use anyhow::Result;
use lastsyn_tests::{
    AgentConfig, await_condition, http,
    kubernetes::{ClusterConfig, Mode, PORT, Scene, ServiceKind, Workload},
    monotonic_now,
    prove::wait_until,
};

const SOON: Duration = Duration::from_secs(10);
const HOOK: Duration = Duration::from_mins(1);
/// Shortly before the bound of [`bounded`], and long after a drain that does not hold has ended.
const BEFORE_THE_BOUND: Duration = Duration::from_secs(12);

fn scene(mode: Mode) -> Result<Scene> {
    let config = ClusterConfig { mode, ..ClusterConfig::default() };
    Scene::up(&config, |service| service.kind(ServiceKind::LoadBalancer).local())
}

fn bounded() -> AgentConfig {
    AgentConfig::default().env("LASTSYN_DRAIN_MAX_WAIT", "14s")
}

/// Whether the rules of a pod's own node lead to it, over each family.
fn is_routed(scene: &Scene, workload: &Workload) -> Result<Vec<bool>> {
    let node = scene.cluster.node(workload.pod.node())?;
    workload.pod.endpoints(PORT).into_iter().map(|to| node.routes_to(to)).collect()
}

#[test]
fn without_a_peer_on_the_node_the_drain_holds_to_its_bound() {
    let scene = scene(Mode::Nftables).unwrap();
    let workload = scene.workload(0, "drains", bounded()).unwrap();
    let stopping = workload.delete().unwrap();
    let called_at = stopping.called_at;
    wait_until(called_at, BEFORE_THE_BOUND).unwrap();
    assert_eq!(is_routed(&scene, &workload).unwrap(), [true, true], "kube-proxy's fallback is in the rules");
    assert!(stopping.holds().unwrap());
    let ended = stopping.finish(HOOK).unwrap();
    assert_eq!(ended.reason(), "bound", "{}", ended.verdict);
    assert!(ended.verdict.to_string().contains("web"), "{}", ended.verdict);
}

#[test]
fn a_new_pod_on_the_node_ends_it() {
    for mode in Mode::ALL {
        let scene = scene(mode).unwrap();
        let workload = scene.workload(0, "drains", AgentConfig::default()).unwrap();
        let stopping = workload.delete().unwrap();
        wait_until(stopping.called_at, Duration::from_secs(4)).unwrap();
        assert!(stopping.holds().unwrap(), "{mode:?}");
        assert_eq!(is_routed(&scene, &workload).unwrap(), [true, true], "{mode:?}");
        let (_peer, _server) = scene.peer(0, "peer").unwrap();
        let ended = stopping.finish(HOOK).unwrap();
        assert_eq!(is_routed(&scene, &workload).unwrap(), [false, false], "{mode:?}");
        assert!(ended.by_evidence_or_wait(), "{mode:?}: {}", ended.verdict);
    }
}

#[test]
fn the_last_ready_pod_of_a_service_holds_to_its_bound() {
    let scene = Scene::up(&ClusterConfig::default(), |service| service).unwrap();
    let workload = scene.workload(0, "drains", bounded()).unwrap();
    scene.stays.set_ready(false).unwrap();
    scene.cluster.await_routes(&scene.stays, PORT, false).unwrap();
    let ended = workload.delete().unwrap().finish(HOOK).unwrap();
    assert_eq!(ended.reason(), "bound", "{}", ended.verdict);
}

#[test]
fn the_balancers_window_counts_from_the_zero_that_was_seen() {
    const WINDOW: Duration = Duration::from_secs(9);
    let scene = scene(Mode::Nftables).unwrap();
    let config = AgentConfig::default().env("LASTSYN_LOAD_BALANCER_WINDOW", "9s");
    let workload = scene.workload(0, "drains", config).unwrap();
    let node = &scene.cluster.nodes()[0];
    let port = scene.service.health_check_node_port().unwrap();
    let local = |address| {
        let answer = http::get(scene.cluster.outside(), (address, port).into(), "/", SOON).unwrap();
        answer.json().unwrap()["localEndpoints"].as_u64().unwrap()
    };
    for address in node.addresses() {
        await_condition("a local endpoint", SOON, || local(address) == 1).unwrap();
    }
    let stopping = workload.delete().unwrap();
    let mut last_one = 0;
    await_condition("no local endpoint", SOON, || {
        let asked_at = monotonic_now();
        let some = node.addresses().into_iter().any(|address| local(address) > 0);
        if some {
            last_one = asked_at;
        }
        !some
    })
    .unwrap();
    // No fallback any more: the pod serves no longer.
    workload.pod.set_ready(false).unwrap();
    let ended = stopping.finish(HOOK).unwrap();
    let since = Duration::from_nanos(ended.at.saturating_sub(last_one));
    assert!(since >= WINDOW, "{since:?} after the last answer with an endpoint: {}", ended.verdict);
    assert!(ended.by_evidence_or_wait(), "{}", ended.verdict);
}
