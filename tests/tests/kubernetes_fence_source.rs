//! With `routing.source: fence` a sidecar needs no token of the API server, and no way to anything but the fence: its drain ends
//! as with one. The fence shows a pod its own, and nobody else anything.

#![expect(clippy::indexing_slicing, reason = "what is missing fails the test")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, Host, await_condition, http,
    kubernetes::{ClusterConfig, Ended, Fence, FenceRight, Mode, PORT, PodSpec, Scene, ServiceSpec, Workload},
};
use serde_json::json;

const HOOK: Duration = Duration::from_mins(1);
const SOON: Duration = Duration::from_secs(20);
const BOUND: u64 = 20_000;
const SLICES: &str = "apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

fn scene(mode: Mode) -> Result<(Scene, Fence)> {
    let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
    let fence = Fence::start(
        &scene.cluster,
        1,
        "fence",
        &scene.cluster.fence_access_in("default", "fence", &FenceRight::SOURCE)?,
    )?;
    Ok((scene, fence))
}

fn through(fence: &Fence) -> AgentConfig {
    fence.give_to(AgentConfig::default()).env("LASTSYN_ROUTING_SOURCE", "fence")
}

/// A pod without a token, in every node's rules.
fn workload(scene: &Scene, node: usize, name: &str, config: AgentConfig) -> Result<Workload> {
    let workload = Workload::start(&scene.cluster, node, &PodSpec::new(name, "web", PORT), None, config)?;
    scene.await_routes(&workload.pod)?;
    Ok(workload)
}

/// From now on the pod reaches the fence, and nothing else by itself.
fn leave_a_way_to_the_fence_alone(workload: &Workload, fence: &Fence) -> Result<()> {
    let (address, port) = (fence.address().ip(), fence.address().port());
    workload.pod.host().nft(&format!(
        "table inet way {{ chain out {{ type filter hook output priority 0; policy drop; oifname lo accept; \
         icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept; ct state established,related accept; \
         ip daddr {address} tcp dport {port} accept; }}; }}\n"
    ))
}

fn ensure_routed_away(scene: &Scene, workload: &Workload, ended: &Ended) -> Result<()> {
    for node in scene.cluster.nodes() {
        for endpoint in workload.pod.endpoints(PORT) {
            ensure!(!node.routes_to(endpoint)?, "{} leads to {endpoint}", node.name());
        }
    }
    let verdict = &ended.verdict;
    ensure!(ended.reason() == "routed-away" && verdict["notObserved"] == json!([]), "{verdict:#}");
    let nodes = &verdict["routing"]["nodes"];
    ensure!(nodes["total"] == 6 && nodes["confirmed"] == 6, "{verdict:#}");
    Ok(())
}

#[test]
fn nftables_without_a_token_and_with_no_way_but_to_the_fence_a_drain_ends_routed_away() {
    without_a_token_a_drain_ends_routed_away(Mode::Nftables).unwrap();
}

#[test]
fn iptables_without_a_token_and_with_no_way_but_to_the_fence_a_drain_ends_routed_away() {
    without_a_token_a_drain_ends_routed_away(Mode::Iptables).unwrap();
}

fn without_a_token_a_drain_ends_routed_away(mode: Mode) -> Result<()> {
    let (scene, fence) = scene(mode)?;
    let workload = workload(&scene, 0, "leaves", through(&fence))?;
    leave_a_way_to_the_fence_alone(&workload, &fence)?;
    fence.await_rest()?;

    let check = workload.agent.check()?;
    check.wait(SOON)?;
    let text = check.report();
    for expected in ["answers, through the fence http://", "default/leaves may be read", "may be listed and watched"] {
        ensure!(text.contains(expected), "{text}");
    }
    ensure!(!text.contains("list nodes") && !text.contains("warn  endpointslices"), "{text}");

    let ended = workload.delete()?.finish(HOOK)?;
    ensure_routed_away(&scene, &workload, &ended)
        .with_context(|| format!("the fence wrote:\n{}", fence.process().report()))
}

#[test]
fn a_node_that_stands_still_is_waited_for_and_a_service_that_comes_late_is_seen() -> Result<()> {
    let (scene, fence) = scene(Mode::Nftables)?;
    let workload = workload(&scene, 0, "leaves", through(&fence))?;
    fence.await_rest()?;
    let node = scene.cluster.nodes().last().context("nodes")?;
    node.proxy().freeze()?;
    let late = (|| {
        let stopping = workload.delete()?;
        await_condition("the question", SOON, || {
            fence.status(scene.stays.host()).is_ok_and(|status| status["answers"].as_u64() >= Some(1)).then_some(())
        })?;
        // Its slices list the pod too: the fence has not shown them, and lets the watch expire.
        scene.cluster.service(&ServiceSpec::new("late", "web", PORT))?;
        let address = workload.pod.addresses()[0].to_string();
        await_condition("the pod in the other Service's slices", SOON, || {
            scene.cluster.endpoints("late").is_ok_and(|all| format!("{all:?}").contains(&address)).then_some(())
        })?;
        anyhow::Ok(stopping)
    })();
    node.proxy().thaw()?;
    let ended = late?.finish(HOOK)?;
    ensure_routed_away(&scene, &workload, &ended)?;
    let services = ended.verdict["routing"]["services"].as_array().context("services")?;
    ensure!(services.iter().any(|service| service["name"] == "late"), "{:#}", ended.verdict);
    Ok(())
}

#[test]
fn nobody_but_the_pod_itself_is_shown_anything() -> Result<()> {
    let (scene, fence) = scene(Mode::Nftables)?;
    let peer = scene.peer(0, "peer")?;
    scene.await_routes(&peer.0)?;
    let alone = scene.cluster.pod(0, &PodSpec::new("alone", "alone", PORT))?;
    scene.cluster.service(&ServiceSpec::new("others", "alone", PORT))?;
    alone.set_ready(true)?;
    let get = |from: &Host, path: &str| http::get(from, fence.address(), &format!("/v1/cluster/{path}"), SOON);
    let denied = |from: &Host, path: &str| -> Result<()> {
        let answer = get(from, path)?;
        let status = answer.json()?;
        ensure!(answer.status == 403 && status["kind"] == "Status" && status["code"] == 403, "{path}: {status}");
        Ok(())
    };
    let own = peer.0.host();
    // Who it is not: another pod, the machine outside, a node.
    for from in [scene.stays.host(), scene.cluster.outside(), scene.cluster.nodes()[0].host()] {
        denied(from, &format!("default/peer/{SLICES}"))?;
        denied(from, "default/peer/api/v1/namespaces/default/pods/peer")?;
    }
    // What is not its own.
    for path in [
        "default/none/api/v1/namespaces/default/pods/none",
        "default/peer/api/v1/namespaces/default/pods/stays",
        "default/peer/api/v1/namespaces/default/secrets",
        "default/peer/api/v1/nodes",
        "kube-system/peer/api/v1/namespaces/kube-system/services",
        "default/peer/../../../api/v1/nodes",
    ] {
        denied(own, path)?;
    }
    let slices = await_condition("the other Service's slice", SOON, || {
        let list = get(own, &format!("default/peer/{SLICES}")).ok()?.json().ok()?;
        let others = list["items"]
            .as_array()?
            .iter()
            .any(|slice| slice["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("others")));
        others.then_some(list)
    })?;
    let text = slices.to_string();
    let shown = |address: std::net::IpAddr| text.contains(&format!("{:?}", address.to_string()));
    ensure!(shown(peer.0.addresses()[0]) && shown(scene.stays.addresses()[0]), "{text}");
    ensure!(!shown(alone.addresses()[0]) && !text.contains("targetRef"), "of a Service that is not its own: {text}");
    let pod = get(own, "default/peer/api/v1/namespaces/default/pods/peer")?.json()?;
    ensure!(
        pod["metadata"]["name"] == "peer" && pod["status"]["podIP"] == json!(peer.0.addresses()[0].to_string()),
        "{pod}"
    );
    Ok(())
}

#[test]
fn a_container_that_is_restarted_is_told_from_a_pod_that_ends() -> Result<()> {
    let (scene, fence) = scene(Mode::Nftables)?;
    let workload = workload(&scene, 0, "restarts", through(&fence))?;
    let ended = workload.stop(false)?.finish(HOOK)?;
    ensure!(ended.reason() == "not-terminating", "{:#}", ended.verdict);
    Ok(())
}

fn names(ended: &Ended) -> Vec<&str> {
    let entries = ended.verdict["notObserved"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["what"].as_str()).collect()
}

#[test]
fn a_fence_that_was_never_there_leaves_a_drain_unverified_and_no_shorter() -> Result<()> {
    let (scene, fence) = scene(Mode::Nftables)?;
    let nowhere = AgentConfig::default()
        .env("LASTSYN_ROUTING_FENCE", "http://10.10.0.1:19481")
        .env("LASTSYN_ROUTING_SOURCE", "fence");
    let without = workload(&scene, 0, "without", nowhere)?;
    // The fence may not read what it is to show.
    fence.stop()?;
    scene.cluster.api().post("/api/v1/namespaces", &json!({"metadata": {"name": "fences"}}))?;
    let access = scene.cluster.fence_access_in("fences", "blind", &[FenceRight::Pods])?;
    let there = AgentConfig::default().env("LASTSYN_POD_NAMESPACE", "fences");
    let blind = Fence::with(&scene.cluster, 2, "blind", &access, there)?;
    let untold = workload(&scene, 1, "untold", through(&blind))?;
    let check = untold.agent.check()?;
    check.wait(SOON)?;
    ensure!(check.report().contains("let the fence list and watch services everywhere"), "{}", check.report());
    let stopping = [without.delete()?, untold.delete()?];
    for ended in stopping.map(|stopping| stopping.finish(HOOK)) {
        let ended = ended?;
        ensure!(ended.reason() == "unverified", "{:#}", ended.verdict);
        ensure!(ended.verdict["durationMs"].as_u64() >= Some(7_000), "{:#}", ended.verdict);
        ensure!(!names(&ended).is_empty(), "{:#}", ended.verdict);
    }
    Ok(())
}

#[test]
fn a_fence_that_dies_in_a_drain_holds_it_to_its_bound_and_one_that_comes_back_ends_it() -> Result<()> {
    let (scene, mut fence) = scene(Mode::Nftables)?;
    let stays_away = workload(&scene, 0, "bound", through(&fence))?;
    fence.await_rest()?;
    let dies_in = |fence: &Fence, workload: &Workload| -> Result<()> {
        await_condition("the question", SOON, || {
            fence.status(workload.pod.host()).is_ok_and(|status| status["answers"].as_u64() >= Some(1)).then_some(())
        })?;
        fence.kill()
    };
    let stopping = stays_away.delete()?;
    dies_in(&fence, &stays_away)?;
    let ended = stopping.finish(HOOK)?;
    ensure!(ended.reason() == "bound" && ended.verdict["durationMs"].as_u64() >= Some(BOUND), "{:#}", ended.verdict);
    ensure!(names(&ended).contains(&"fence"), "{:#}", ended.verdict);

    fence.restart(&scene.cluster)?;
    let comes_back = workload(&scene, 2, "away", through(&fence))?;
    let stopping = comes_back.delete()?;
    dies_in(&fence, &comes_back)?;
    fence.restart(&scene.cluster)?;
    let ended = stopping.finish(HOOK)?;
    ensure_routed_away(&scene, &comes_back, &ended)
}

#[test]
fn a_source_without_a_fence_is_refused_at_the_start() -> Result<()> {
    let (scene, _fence) = scene(Mode::Nftables)?;
    let config = AgentConfig::default().env("LASTSYN_ROUTING_SOURCE", "fence");
    let refused = Workload::start(&scene.cluster, 0, &PodSpec::new("leaves", "web", PORT), None, config);
    let error = format!("{:#}", refused.err().context("it started")?);
    ensure!(error.contains("routing.source") && error.contains("routing.fence"), "{error}");
    Ok(())
}
