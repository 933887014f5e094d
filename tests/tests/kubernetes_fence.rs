//! A drain with a fence ends `routed-away` when every node's rules have the withdrawal, and not before; whatever becomes of
//! the fence ends no drain earlier, and the verdict says what became of it. `cargo xtask prove fence` shows it with full
//! numbers.

#![expect(clippy::indexing_slicing, reason = "what is missing fails the test")]

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, agent, await_condition,
    kubernetes::{ClusterConfig, Ended, Fence, Mode, PORT, PodSpec, Right, Scene, Workload},
    openmetrics::{Metrics, documented},
    process::Stream,
    prove::{fence, frozen_node, wait_until},
};
use serde_json::{Value, json};

const HOOK: Duration = Duration::from_mins(1);
const SOON: Duration = Duration::from_secs(20);
/// The bound of a drain where nothing else is configured.
const BOUND: u64 = 20_000;

fn scene(mode: Mode) -> Result<Scene> {
    Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)
}

/// That every node's rules, over both families, lead to a pod no longer.
fn ensure_withdrawn(scene: &Scene, workload: &Workload) -> Result<()> {
    for node in scene.cluster.nodes() {
        for endpoint in workload.pod.endpoints(PORT) {
            ensure!(!node.routes_to(endpoint)?, "{} leads to {endpoint}", node.name());
        }
    }
    Ok(())
}

/// That all nodes are confirmed by the fence, and nothing else is claimed.
fn ensure_routed_away(ended: &Ended) -> Result<()> {
    let verdict = &ended.verdict;
    ensure!(ended.reason() == "routed-away", "{verdict:#}");
    let nodes = &verdict["routing"]["nodes"];
    ensure!(nodes["total"] == 6 && nodes["confirmed"] == 6, "{verdict:#}");
    ensure!(
        verdict["routing"]["evidence"].as_array().is_some_and(|all| all.iter().all(|one| one["by"] == "fence")),
        "{verdict:#}"
    );
    ensure!(verdict["notObserved"] == json!([]), "{verdict:#}");
    ensure!(verdict["assumes"] == json!(["firstList<=2s"]), "{verdict:#}");
    ensure!(verdict["routing"]["fence"]["answers"] == true, "{verdict:#}");
    Ok(())
}

#[test]
fn nftables_a_calm_drain_ends_routed_away() {
    a_calm_drain_ends_routed_away(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_calm_drain_ends_routed_away() {
    a_calm_drain_ends_routed_away(Mode::Iptables).unwrap();
}

fn a_calm_drain_ends_routed_away(mode: Mode) -> Result<()> {
    let scene = scene(mode)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let workload = scene.workload(0, "leaves", fence.give_to(AgentConfig::default()))?;
    fence.await_rest()?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure_withdrawn(&scene, &workload)?;
    ensure_routed_away(&ended).with_context(|| format!("the fence wrote:\n{}", fence.process().report()))?;

    let status = fence.status(workload.pod.host())?;
    let nodes = status["nodes"].as_array().context("nodes")?;
    ensure!(nodes.len() == 6 && nodes.iter().all(|node| node["lag"]["count"].as_u64() >= Some(2)), "{status:#}");
    // As people ask for it.
    let place = format!("http://{}", fence.address());
    let asked = agent::subcommand(workload.pod.host(), "fence", ["status", "--fence", &place])?;
    asked.wait_for_success(HOOK)?;
    let table = asked.text(Stream::Output);
    ensure!(table.contains("serves") && table.matches("IPv6").count() == 3, "{table}");
    let metrics = fence.get(workload.pod.host(), "/metrics")?.body;
    let metrics = Metrics::parse(&metrics).with_context(|| metrics.clone())?;
    ensure!(metrics.value("lastsyn_fence_questions_total") >= Some(1.0), "{metrics:#?}");
    // Two markers at each of three nodes, and over each family.
    ensure!(metrics.value(r#"lastsyn_fence_marker_seconds_count{family="IPv6"}"#) >= Some(6.0), "{metrics:#?}");
    metrics.ensure_documented(&documented("The fence")?)
}

#[test]
fn without_a_right_on_nodes_and_without_a_way_to_them_a_drain_ends_routed_away() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let access = scene.cluster.access("no-nodes", &[Right::Slices, Right::Services, Right::Pod])?;
    let workload = scene.workload_with(0, "leaves", fence.give_to(AgentConfig::default()), &access)?;
    workload.pod.host().nft(
        "table inet way { chain out { type filter hook output priority 0; \
         ip daddr 10.10.0.11-10.10.0.13 drop; ip6 daddr fd00:10::11-fd00:10::13 drop; tcp dport 10256 drop; }; }\n",
    )?;
    fence.await_rest()?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure_withdrawn(&scene, &workload)?;
    ensure_routed_away(&ended)
}

#[test]
fn nftables_a_node_that_stands_still_is_waited_for_and_then_confirmed() {
    a_node_that_stands_still_is_waited_for_and_then_confirmed(Mode::Nftables).unwrap();
}

#[test]
fn iptables_a_node_that_stands_still_is_waited_for_and_then_confirmed() {
    a_node_that_stands_still_is_waited_for_and_then_confirmed(Mode::Iptables).unwrap();
}

fn a_node_that_stands_still_is_waited_for_and_then_confirmed(mode: Mode) -> Result<()> {
    let scene = frozen_node::up(mode)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let round = fence::frozen(&scene, &fence, "leaves")?;
    round.check()?;
    ensure!(round.summary().lost() == 0, "{}: {}", round.summary(), round.ended.verdict);
    ensure!(round.summary().served_by("leaves") >= 10, "{}", round.summary());
    ensure_routed_away(&round.ended).with_context(|| format!("the fence wrote:\n{}", fence.process().report()))
}

/// Its rules, which nobody freezes, are the old ones for as long as it does not hear of the withdrawal.
#[test]
fn a_node_that_is_cut_off_from_the_api_server_is_waited_for_until_it_is_back() -> Result<()> {
    const CUT: Duration = Duration::from_secs(20);
    let scene = scene(Mode::Nftables)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let spec = PodSpec { grace_seconds: 90, ..PodSpec::new("leaves", "web", PORT) };
    let config = fence.give_to(AgentConfig::default());
    // With a way of its own to the nodes it would have waited for this one as for any that shows nothing, and have named it.
    let access = scene.cluster.access("no-nodes", &[Right::Slices, Right::Services, Right::Pod])?;
    let workload = Workload::start(&scene.cluster, 0, &spec, Some(&access), config)?;
    scene.await_routes(&workload.pod)?;
    fence.await_rest()?;
    let node = scene.cluster.nodes().last().context("nodes")?;
    node.cut()?;
    let stopping = workload.delete_with(&["--max-wait", "85s"])?;
    wait_until(stopping.deleted_at, CUT)?;
    ensure!(stopping.holds()?, "a drain ended beside a node that has not heard of it");
    let leads = || workload.pod.endpoints(PORT).into_iter().map(|to| node.routes_to(to)).collect::<Result<Vec<_>>>();
    ensure!(leads()? == [true; 2], "the rules of {} are not the old ones", node.name());
    node.heal()?;
    let ended = stopping.verdict(Duration::from_secs(90))?;
    ensure!(leads()? == [false; 2], "{} still leads to the pod: {:#}", node.name(), ended.verdict);
    ensure_routed_away(&ended).with_context(|| format!("the fence wrote:\n{}", fence.process().report()))
}

#[test]
fn a_node_that_never_comes_back_holds_the_drain_to_its_bound_and_is_named() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    // One with its own way to the nodes, and one without.
    let access = scene.cluster.access("no-nodes", &[Right::Slices, Right::Services, Right::Pod])?;
    let config = || fence.give_to(AgentConfig::default());
    let workloads = [scene.workload(0, "sees", config())?, scene.workload_with(1, "blind", config(), &access)?];
    fence.await_rest()?;
    let node = scene.cluster.nodes().last().context("nodes")?;
    node.proxy().freeze()?;
    let stopping = workloads.iter().map(Workload::delete).collect::<Result<Vec<_>>>()?;
    let ended = stopping.into_iter().map(|stopping| stopping.finish(HOOK)).collect::<Result<Vec<_>>>();
    node.proxy().thaw()?;
    for ended in ended? {
        ensure!(ended.reason() == "bound", "{:#}", ended.verdict);
        let pending: Vec<_> = ended.verdict["notObserved"]
            .as_array()
            .context("notObserved")?
            .iter()
            .filter(|entry| entry["what"] == "node")
            .map(|entry| entry["name"].as_str().unwrap_or_default())
            .collect();
        ensure!(pending == [node.name(), node.name()], "{:#}", ended.verdict);
        ensure!(ended.verdict["routing"]["nodes"]["confirmed"] == 4, "{:#}", ended.verdict);
    }
    Ok(())
}

#[test]
fn a_fence_that_dies_in_a_drain_ends_it_no_earlier_and_is_named() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let access = scene.cluster.access("no-nodes", &[Right::Slices, Right::Services, Right::Pod])?;
    let config = || fence.give_to(AgentConfig::default());
    let workloads = [scene.workload(0, "sees", config())?, scene.workload_with(2, "blind", config(), &access)?];
    fence.await_rest()?;
    let stopping = workloads.iter().map(Workload::delete).collect::<Result<Vec<_>>>()?;
    await_condition("the fence's questions", SOON, || {
        fence.status(workloads[0].pod.host()).is_ok_and(|status| status["answers"].as_u64() >= Some(2)).then_some(())
    })?;
    fence.kill()?;
    let mut ended = stopping.into_iter().map(|stopping| stopping.finish(HOOK)).collect::<Result<Vec<_>>>()?;
    let (blind, sees) = (ended.pop().context("two")?, ended.pop().context("two")?);
    // By what the nodes' own health servers say.
    ensure!(sees.by_evidence_or_wait() && sees.reason() != "routed-away", "{:#}", sees.verdict);
    ensure!(sees.verdict["routing"]["fence"]["answers"] == false, "{:#}", sees.verdict);
    // Nothing else tells it anything of the nodes, and the fence had answered.
    ensure!(blind.reason() == "bound" && blind.verdict["durationMs"].as_u64() >= Some(BOUND), "{:#}", blind.verdict);
    let named = blind.verdict["notObserved"].to_string();
    ensure!(named.contains(r#""what":"fence""#), "{:#}", blind.verdict);
    Ok(())
}

#[test]
fn a_fence_that_was_never_there_costs_what_it_would_have_shown() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let access = scene.cluster.access("no-nodes", &[Right::Slices, Right::Services, Right::Pod])?;
    let config = || AgentConfig::default().env("LASTSYN_ROUTING_FENCE", "http://10.10.0.1:19481");
    let workloads = [scene.workload(0, "sees", config())?, scene.workload_with(2, "blind", config(), &access)?];
    let check = workloads[0].agent.check()?;
    check.wait(SOON)?;
    ensure!(check.report().contains("does not answer"), "{}", check.report());
    let stopping = workloads.iter().map(Workload::delete).collect::<Result<Vec<_>>>()?;
    let mut ended = stopping.into_iter().map(|stopping| stopping.finish(HOOK)).collect::<Result<Vec<_>>>()?;
    let (blind, sees) = (ended.pop().context("two")?, ended.pop().context("two")?);
    ensure!(sees.by_evidence_or_wait() && sees.reason() != "routed-away", "{:#}", sees.verdict);
    ensure!(blind.reason() == "unverified", "{:#}", blind.verdict);
    let names: Vec<&str> = blind.verdict["notObserved"]
        .as_array()
        .context("notObserved")?
        .iter()
        .filter_map(|entry| entry["what"].as_str())
        .collect();
    ensure!(names == ["fence", "nodes"], "{:#}", blind.verdict);
    ensure!(blind.verdict["durationMs"].as_u64() >= Some(7_000), "{:#}", blind.verdict);
    Ok(())
}

#[test]
fn markers_that_a_killed_writer_left_are_taken_for_nothing() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let mut fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    let workload = scene.workload(0, "leaves", fence.give_to(AgentConfig::default()))?;
    fence.await_rest()?;
    let stopping = workload.delete()?;
    // Between its markers: the first is written, and no node has shown the second.
    await_condition("the first marker", SOON, || {
        let status = fence.status(workload.pod.host()).ok()?;
        let all = status["nodes"].as_array()?;
        all.iter().any(|node| node["generation"] == 2).then_some(())
    })?;
    fence.kill()?;
    fence.restart(&scene.cluster)?;
    let ended = stopping.finish(HOOK)?;
    ensure_withdrawn(&scene, &workload)?;
    ensure!(["routed-away", "synced"].contains(&ended.reason()), "{:#}", ended.verdict);
    // The new one goes on where the old one stopped.
    let second = scene.workload(2, "follows", fence.give_to(AgentConfig::default()))?;
    let ended = second.delete()?.finish(HOOK)?;
    ensure_withdrawn(&scene, &second)?;
    ensure_routed_away(&ended)
}

#[test]
fn of_two_replicas_one_writes_and_both_lead_to_it() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let access = scene.cluster.fence_access("fence")?;
    let fences =
        [Fence::start(&scene.cluster, 1, "fence-0", &access)?, Fence::start(&scene.cluster, 2, "fence-1", &access)?];
    let workloads = [
        scene.workload(0, "one", fences[0].give_to(AgentConfig::default()))?,
        scene.workload(1, "other", fences[1].give_to(AgentConfig::default()))?,
    ];
    fences[0].await_rest()?;
    let stopping = workloads.iter().map(Workload::delete).collect::<Result<Vec<_>>>()?;
    await_condition("two answers of one replica", SOON, || {
        let answers = |fence: &Fence| fence.status(workloads[0].pod.host()).ok()?["answers"].as_u64();
        let answers = [answers(&fences[0])?, answers(&fences[1])?];
        (answers == [2, 0] || answers == [0, 2]).then_some(())
    })?;
    for (stopping, workload) in stopping.into_iter().zip(&workloads) {
        let ended = stopping.finish(HOOK)?;
        ensure_withdrawn(&scene, workload)?;
        ensure_routed_away(&ended)?;
    }
    Ok(())
}

#[test]
fn slices_that_somebody_else_has_changed_are_made_anew() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    fence.await_rest()?;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let of_fence = |what: &str| -> Result<Vec<Value>> {
        let found = scene.cluster.api().get(what)?;
        let items = found["items"].as_array().context("items")?;
        let name =
            |item: &Value| item["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("lastsyn-fence-"));
        Ok(items.iter().filter(|item| name(item)).cloned().collect())
    };
    let before = of_fence("/api/v1/namespaces/default/services")?;
    ensure!(before.len() == 2, "{before:#?}");
    for slice in of_fence(slices)? {
        let name = slice["metadata"]["name"].as_str().context("a name")?;
        scene.cluster.api().delete(&format!("{slices}/{name}"), None)?;
    }
    let workload = scene.workload(0, "leaves", fence.give_to(AgentConfig::default()))?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure_withdrawn(&scene, &workload)?;
    ensure_routed_away(&ended).with_context(|| format!("the fence wrote:\n{}", fence.process().report()))?;
    let after = of_fence("/api/v1/namespaces/default/services")?;
    let name = |item: &Value| item["metadata"]["name"].clone();
    ensure!(
        after.len() == 2 && after.iter().all(|item| !before.iter().any(|old| name(old) == name(item))),
        "{after:#?}"
    );
    Ok(())
}

#[test]
fn nothing_is_written_while_nobody_asks() -> Result<()> {
    let scene = scene(Mode::Nftables)?;
    // What the cluster itself writes for the pod that stays has been written.
    scene.await_routes(&scene.stays)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    fence.await_rest()?;
    let versions = || -> Result<BTreeMap<String, Value>> {
        let mut versions = BTreeMap::new();
        for path in [
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        ] {
            for item in scene.cluster.api().get(path)?["items"].as_array().into_iter().flatten() {
                versions.insert(
                    format!("{path}/{}", item["metadata"]["name"]),
                    item["metadata"]["resourceVersion"].clone(),
                );
            }
        }
        Ok(versions)
    };
    let before = versions()?;
    let rested_at = lastsyn_tests::monotonic_now();
    wait_until(rested_at, Duration::from_secs(5))?;
    let after = versions()?;
    ensure!(after == before, "something was written: {before:#?}, then {after:#?}");
    Ok(())
}
