//! On a real kubelet: what the agent says where a container is only restarted, where the pod is deleted, and where it is
//! evicted by the API. The ends that no API server knows of are
//! replayed as a kubelet brings them about.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig,
    agent_log::{self, Step, steps},
    await_condition,
    kubernetes::{Cluster, ClusterConfig, Health, KubeletPod, Mode, PORT, Right, Scene, ServiceSpec},
    monotonic_now,
    prove::wait_until,
};
use serde_json::Value;

/// A drain to its bound of 20 s, and a start.
const HOLD: Duration = Duration::from_mins(2);
/// `drain.restartGuard`, and the bound: the grace period of 30 s less the reserve.
const GUARD_AND_BOUND: (u64, u64) = (5_000, 20_000);
const APP: &str = "web";

fn duration(verdict: &Value) -> u64 {
    verdict["durationMs"].as_u64().unwrap_or_default()
}

/// Waits for the ends of pods, and returns what their agents had logged last: it goes with the pod.
fn watch_to_the_end<const N: usize>(pods: [&KubeletPod<'_>; N]) -> Result<[String; N]> {
    let mut logs = pods.map(|_| String::new());
    await_condition("the pods' ends", HOLD, || {
        for (pod, log) in pods.iter().zip(&mut logs) {
            let longer = pod.log();
            if longer.len() > log.len() {
                *log = longer;
            }
        }
        pods.iter().all(|pod| pod.object().is_ok_and(|object| object.is_none()))
    })?;
    Ok(logs)
}

#[test]
fn a_restart_a_deletion_and_an_eviction_have_the_right_verdicts() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    cluster.access("agent", &Right::ALL)?;
    cluster.access("blind", &[Right::Slices, Right::Services, Right::Nodes])?;
    cluster.service(&ServiceSpec::new("web", APP, PORT))?;
    let create = |name, account, health| KubeletPod::create(&cluster, name, APP, account, health);
    let stays = create("stays", "agent", Health::Well)?;
    let deleted = create("deleted", "agent", Health::Well)?;
    let evicted = create("evicted", "agent", Health::Well)?;
    for pod in [&stays, &deleted, &evicted] {
        pod.await_ready(1, HOLD)?;
    }
    deleted.delete()?;
    evicted.evict()?;

    for log in watch_to_the_end([&deleted, &evicted])? {
        let verdict = agent_log::verdict(&log).with_context(|| format!("no verdict:\n{log}"))?;
        ensure!(["synced", "unverified"].contains(&verdict["reason"].as_str().unwrap_or_default()), "{verdict:#}");
        ensure!(duration(&verdict) < GUARD_AND_BOUND.1, "{verdict:#}");
        let services = verdict["routing"]["services"].as_array().cloned().unwrap_or_default();
        ensure!(services.len() == 2 && services.iter().all(|one| one["state"] == "withdrawn"), "{verdict:#}");
        ensure!(steps(&log).starts_with(&[Step::Hook, Step::Withdrawn, Step::Answered]), "{log}");
        ensure!(agent_log::said(&log).len() <= 10, "{:#?}", agent_log::said(&log));
    }

    // Only now: a server that is sick is not ready for a while, which is a relevant change to the others' drains.
    let restarts = create("restarts", "agent", Health::SickOnce(6))?;
    let restarts_blindly = create("restarts-blindly", "blind", Health::SickOnce(6))?;
    // Only a read of the pod that began after the guard shows that it is not terminating.
    let verdict = restarts.await_verdict(HOLD)?;
    ensure!(verdict["reason"] == "not-terminating" && duration(&verdict) >= GUARD_AND_BOUND.0, "{verdict:#}");
    ensure!(duration(&verdict) < GUARD_AND_BOUND.1, "{verdict:#}");
    // Without the right nobody knows, so it is held as if it were.
    let verdict = restarts_blindly.await_verdict(HOLD)?;
    ensure!(verdict["reason"] == "bound" && duration(&verdict) >= GUARD_AND_BOUND.1, "{verdict:#}");
    for pod in [&restarts, &restarts_blindly] {
        pod.await_ready(2, HOLD)?;
        ensure!(!steps(&pod.log()).contains(&Step::AgentStops), "{}", pod.log());
    }
    Ok(())
}

/// Its server is asked every second at the port of its clients until it has ended.
#[test]
fn a_kubelet_s_probes_hold_no_drain_unless_they_are_taken_for_clients_and_its_hook_over_http_does() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    cluster.access("agent", &Right::ALL)?;
    cluster.service(&ServiceSpec::new("web", APP, PORT))?;
    let create = |name, health| KubeletPod::create(&cluster, name, APP, "agent", health);
    let (stays, told) = (create("stays", Health::Well)?, create("told", Health::Probed("auto"))?);
    let taken_for_clients = create("taken-for-clients", Health::Probed("off"))?;
    let called = create("called", Health::HookOverHttp)?;
    for pod in [&stays, &told, &taken_for_clients, &called] {
        pod.await_ready(1, HOLD)?;
    }
    await_condition("an agent that has learnt of the kubelet", HOLD, || {
        told.status().is_ok_and(|status| status["sensor"]["probes"]["method"] == "controlGroup")
    })
    .with_context(|| format!("{:#}", told.status().unwrap_or_default()))?;
    let ports = told.status()?["sensor"]["probes"]["ports"].clone();
    ensure!(ports.as_array().is_some_and(|ports| ports.contains(&PORT.into())), "{ports}");
    for pod in [&told, &taken_for_clients, &called] {
        pod.delete()?;
    }

    let logs = watch_to_the_end([&told, &taken_for_clients, &called])?;
    // A hook that was refused would have let the server go at once, without a drain.
    ensure!(steps(&logs[2]).starts_with(&[Step::Hook, Step::Withdrawn, Step::Answered]), "{}", logs[2]);
    let verdict = |log: &String| agent_log::verdict(log).with_context(|| format!("no verdict:\n{log}"));
    let [told, taken_for_clients, called] = logs.each_ref().map(verdict);
    let (told, taken_for_clients, called) = (told?, taken_for_clients?, called?);
    ensure!(["synced", "unverified"].contains(&called["reason"].as_str().unwrap_or_default()), "{called:#}");
    let of = |verdict: &Value, class: &str| verdict["listeners"][0]["families"][0][class].as_u64().unwrap_or_default();
    ensure!(["synced", "unverified"].contains(&told["reason"].as_str().unwrap_or_default()), "{told:#}");
    ensure!(duration(&told) < GUARD_AND_BOUND.1, "{told:#}");
    // Every second, of which nothing is a client.
    ensure!(of(&told, "probe") >= duration(&told) / 1_000 - 1, "{told:#}");
    ensure!(of(&told, "new") == 0 && !told["notObserved"].to_string().contains("probe"), "{told:#}");
    ensure!(taken_for_clients["reason"] == "bound" && of(&taken_for_clients, "new") >= 10, "{taken_for_clients:#}");
    Ok(())
}

/// Node-pressure eviction: a kubelet calls the hooks of all containers and then stops them (`killContainer`), sets no
/// `deletionTimestamp`, and tells the API server that the pod has failed only when its containers have ended. Until then its
/// slices list it ready, and every node goes on sending.
#[test]
fn a_node_under_pressure_evicts_a_pod_that_is_still_routed_to() -> Result<()> {
    let scene = Scene::up(&ClusterConfig::default(), |service| service)?;
    let config = || AgentConfig::default().env("LASTSYN_DRAIN_MAX_WAIT", "9s");
    let (told, untold) = (scene.workload(0, "told", config())?, scene.workload(2, "untold", config())?);
    let stopping = [told.stop(true)?, untold.stop(false)?];
    let [told, untold] = stopping.map(|stopping| stopping.finish(HOLD));
    let (told, untold) = (told?.verdict, untold?.verdict);
    // The agent's own hook is called with the server's, and shows it.
    ensure!(told["reason"] == "bound" && duration(&told) >= 9_000, "{told:#}");
    ensure!(told["holding"].to_string().contains("routing"), "{told:#}");
    // An agent without that hook cannot tell it from a restart: the documentation says what to do about it.
    ensure!(untold["reason"] == "not-terminating" && duration(&untold) >= GUARD_AND_BOUND.0, "{untold:#}");
    Ok(())
}

/// Node shutdown: the same, and the node says that it is not ready, so that the control plane takes its pods out of the
/// slices.
#[test]
fn a_node_that_shuts_down_takes_its_pod_out_of_the_slices() -> Result<()> {
    let scene = Scene::up(&ClusterConfig { mode: Mode::Iptables, ..ClusterConfig::default() }, |service| service)?;
    let workload = scene.workload(0, "shut-down", AgentConfig::default())?;
    let stopping = workload.stop(true)?;
    wait_until(monotonic_now(), Duration::from_secs(1))?;
    ensure!(stopping.holds()?, "it ended before anybody was told");
    workload.pod.set_ready(false)?;
    scene.cluster.await_routes(&workload.pod, PORT, false)?;
    let ended = stopping.finish(HOLD)?;
    ensure!(ended.by_evidence_or_wait() && duration(&ended.verdict) > 1_000, "{:#}", ended.verdict);
    Ok(())
}
