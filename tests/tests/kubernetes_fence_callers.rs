//! The fence answers pods whose endpoints are going, and nobody else: who asks is known by the address that the question comes
//! from. How much may be asked is limited.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, Host, await_condition,
    http::{self, Method},
    kubernetes::{Cluster, ClusterConfig, Fence, FenceRight, KubePod, Mode, PORT, PodSpec, Scene},
};
use serde_json::json;

const SOON: Duration = Duration::from_secs(10);
const HOOK: Duration = Duration::from_mins(1);
const PATH: &str = "/v1/fence";

/// The pod that stays is ready, and in every node's rules.
fn scene() -> Result<Scene> {
    let scene = Scene::up(&ClusterConfig { mode: Mode::Nftables, ..ClusterConfig::default() }, |service| service)?;
    scene.await_routes(&scene.stays)?;
    Ok(scene)
}

fn question(pod: &str) -> String {
    json!({"families": ["IPv4"], "standMs": 2000, "firstListMs": 2000, "pod": pod}).to_string()
}

/// Asks, and reads no further than the refusal, if it is one. `None`: the question is taken.
fn refusal(from: &Host, fence: SocketAddr, pod: &str) -> Result<Option<(u16, String)>> {
    // An answer grows for as long as it takes: in full it has ended when every node is confirmed.
    let answer = http::request(from, &Method::POST, fence, PATH, &question(pod), SOON)?;
    Ok((answer.status != 200).then_some((answer.status, answer.body)))
}

fn ensure_refused(refused: Option<(u16, String)>, why: &str) -> Result<()> {
    let (status, body) = refused.context("the question was taken")?;
    ensure!(status == 403 && body.contains(why), "{status}: {body}");
    Ok(())
}

fn await_listed(cluster: &Cluster, pod: &KubePod, listed: bool) -> Result<()> {
    let address = pod.addresses()[0].to_string();
    await_condition("the pod in the slices, or not", SOON, || {
        let slices = cluster.api().get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").ok()?;
        (slices.to_string().contains(&address) == listed).then_some(())
    })
}

#[test]
fn only_an_endpoint_that_is_going_may_ask() -> Result<()> {
    let scene = scene()?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    fence.await_rest()?;
    let at = fence.address();
    let (ready, stays) = (&scene.stays, scene.stays.host());
    ensure_refused(refusal(stays, at, "default/stays")?, "it is not going")?;
    ensure_refused(refusal(stays, at, "")?, "namespace/name")?;
    ensure_refused(refusal(stays, at, "../default/stays")?, "namespace/name")?;
    ensure_refused(refusal(stays, at, "elsewhere/stays")?, "is no endpoint in elsewhere")?;
    // The control plane's own address is nobody's pod's.
    ensure_refused(refusal(scene.cluster.outside(), at, "default/stays")?, "not the address of the pod stays")?;
    // A pod of no Service.
    let alone = scene.cluster.pod(0, &PodSpec::new("alone", "alone", PORT))?;
    alone.set_ready(true)?;
    ensure_refused(refusal(alone.host(), at, "default/alone")?, "is not terminating")?;
    alone.delete()?;
    ensure!(refusal(alone.host(), at, "default/alone")?.is_none(), "a terminating pod that is in no slice any more");

    // One that lies about its name gains nothing: its address is that of another.
    let (goes, _server) = scene.peer(2, "goes")?;
    scene.await_routes(&goes)?;
    goes.delete()?;
    await_condition("the endpoint that goes", SOON, || {
        refusal(goes.host(), at, "default/goes").ok().and_then(|refused| refused.is_none().then_some(()))
    })?;
    ensure_refused(refusal(stays, at, "default/goes")?, "it is not going")?;

    // Not ready is going: kube-proxy sends it nothing any more.
    ready.set_ready(false)?;
    await_condition("the endpoint that is not ready", SOON, || {
        refusal(stays, at, "default/stays").ok().and_then(|refused| refused.is_none().then_some(()))
    })?;
    let metrics = fence.get(stays, "/metrics")?.body;
    ensure!(metrics.contains(r#"lastsyn_fence_refusals_total{reason="caller"}"#), "{metrics}");
    Ok(())
}

#[test]
fn a_pod_that_was_taken_out_of_its_slices_may_ask_when_it_is_deleted() -> Result<()> {
    let scene = scene()?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let (goes, _server) = scene.peer(2, "goes")?;
    scene.await_routes(&goes)?;
    scene
        .cluster
        .api()
        .patch("/api/v1/namespaces/default/pods/goes", &json!({"metadata": {"labels": {"app": "no"}}}))?;
    await_listed(&scene.cluster, &goes, false)?;
    ensure_refused(refusal(goes.host(), fence.address(), "default/goes")?, "is not terminating")?;
    goes.delete()?;
    ensure!(refusal(goes.host(), fence.address(), "default/goes")?.is_none());
    Ok(())
}

#[test]
fn without_its_right_the_fence_takes_nobody_and_says_so() -> Result<()> {
    let scene = scene()?;
    // In its own namespace it may list slices; the pods are in another.
    scene.cluster.api().post("/api/v1/namespaces", &json!({"metadata": {"name": "fences"}}))?;
    let access = scene.cluster.fence_access_in("fences", "fence", &[FenceRight::Pods])?;
    let there = || AgentConfig::default().env("LASTSYN_POD_NAMESPACE", "fences");
    let fence = Fence::with(&scene.cluster, 1, "fence", &access, there())?;
    let workload = scene.workload(0, "leaves", fence.give_to(AgentConfig::default()))?;
    fence.await_rest()?;
    let ended = workload.delete()?.finish(HOOK)?;
    // By what the nodes' own health servers say, and no earlier for it.
    ensure!(ended.by_evidence_or_wait() && ended.reason() != "routed-away", "{:#}", ended.verdict);
    ensure!(ended.verdict["routing"]["fence"]["answers"] == false, "{:#}", ended.verdict);
    let why = ended.verdict["routing"]["fence"]["why"].as_str().unwrap_or_default();
    ensure!(why.contains("list endpointslices everywhere") && why.contains("fence.callers"), "{why}");

    // Where the operator says that a network policy sees to it, it takes whoever comes.
    fence.stop()?;
    let open = there().env("LASTSYN_FENCE_CALLERS", "any");
    let open = Fence::with(&scene.cluster, 2, "open", &access, open)?;
    let workload = scene.workload(1, "follows", open.give_to(AgentConfig::default()))?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure!(ended.reason() == "routed-away", "{:#}", ended.verdict);
    Ok(())
}

#[test]
fn what_one_address_may_ask_is_limited() -> Result<()> {
    let scene = scene()?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    fence.await_rest()?;
    let ask = |body: &str| http::request(scene.stays.host(), &Method::POST, fence.address(), PATH, body, SOON);
    let long = question(&"a".repeat(5000));
    ensure!(ask(&long)?.status == 413, "a question of {} bytes", long.len());
    ensure!(ask("{")?.status == 400);
    let answers: Vec<_> = (0..60).map(|_| ask(&question("default/stays"))).collect::<Result<_>>()?;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    ensure!(count(403) >= 20 && count(429) >= 1 && count(403) + count(429) == 60, "{answers:#?}");
    // Others are not kept from asking by it.
    let other =
        http::request(scene.cluster.outside(), &Method::POST, fence.address(), PATH, &question("default/stays"), SOON)?;
    ensure!(other.status == 403, "{}: {}", other.status, other.body);
    Ok(())
}
