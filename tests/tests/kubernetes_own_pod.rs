//! What the agent makes of its own pod, which it reads once when it starts: the bound is that of the pod's grace period, and
//! `check` knows the pod's containers. Without the right to read it nothing fails.

#![expect(clippy::indexing_slicing, reason = "what is missing fails the test")]

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, ensure};
use lastsyn_tests::{
    AgentConfig, await_condition,
    kubernetes::{Api, ClusterConfig, PORT, PodSpec, Right, Scene, Workload},
    process::Stream,
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);
/// `terminationGracePeriodSeconds`. With the reserve of 10 s drains last at most 4 s: shorter than any that waits for nodes.
const GRACE: u32 = 14;

/// The Events on a pod: reason and type.
fn events(api: &Api, pod: &str) -> Result<BTreeSet<String>> {
    let answer = api.get("/apis/events.k8s.io/v1/namespaces/default/events")?;
    let on_it = answer["items"].as_array().into_iter().flatten().filter(|event| event["regarding"]["name"] == pod);
    let words = |event: &Value| Some(format!("{} {}", event["reason"].as_str()?, event["type"].as_str()?));
    Ok(on_it.filter_map(words).collect())
}

#[test]
fn the_bound_is_that_of_the_pod_s_grace_period() -> Result<()> {
    let scene = Scene::up(&ClusterConfig::default(), |service| service)?;
    let cluster = &scene.cluster;
    let without = cluster.access("without", &[Right::Slices, Right::Services, Right::Nodes])?;
    let start = |node, name: &str, access| {
        let spec = PodSpec { grace_seconds: GRACE, probe_seconds: Some(7), ..PodSpec::new(name, "web", PORT) };
        Workload::start(cluster, node, &spec, Some(access), AgentConfig::default().env("LASTSYN_REPORT_EVENTS", "true"))
    };
    let rights: Vec<Right> = Right::ALL.into_iter().chain([Right::Events]).collect();
    let (known, unknown) = (start(0, "known", &cluster.access("with", &rights)?)?, start(1, "unknown", &without)?);
    let unknown_agent = &unknown.agent;
    let pods = [known.pod.name().to_owned(), unknown.pod.name().to_owned()];
    for workload in [&known, &unknown] {
        cluster.await_routes(&workload.pod, PORT, true)?;
    }

    known.agent.process().wait_for_line("the pod has been read", SOON)?;
    unknown.agent.process().wait_for_line("the pod's grace period and probes are not known", SOON)?;
    for workload in [&known, &unknown] {
        workload.await_no_api_connection(cluster, SOON)?;
        let log = workload.agent.process().text(Stream::Error);
        let said = log.matches("grace_period").count() + log.matches("are not known").count();
        ensure!(said == 1, "it is said once:\n{log}");
    }

    // Whose probes they are it cannot know yet: no kubelet has asked this agent anything.
    let probes = |workload: &Workload| Ok::<_, anyhow::Error>(workload.agent.status()?["sensor"]["probes"].clone());
    let (of_known, of_unknown) = (probes(&known)?, probes(&unknown)?);
    ensure!(of_known["ports"] == json!([PORT]), "{of_known:#}");
    ensure!(of_unknown["ports"] == json!([]) && of_unknown["method"] == "off", "{of_unknown:#}");

    let check = known.agent.check()?;
    check.wait_for_success(SOON)?;
    let table = check.text(Stream::Output);
    ensure!(table.contains("at 8080 kubelet's are known by its control group"), "{table}");
    ensure!(table.contains("a drain lasts 2s to 4s, and 10s are left to stop, of the pod's 14s"), "{table}");
    ensure!(table.contains("container web has no preStop hook, and the ports 8080"), "{table}");
    let check = unknown.agent.check()?;
    check.wait_for_success(SOON)?;
    let table = check.text(Stream::Output);
    ensure!(table.contains("Kubernetes' default is taken for it"), "{table}");

    let drains = [known.delete()?, unknown.delete()?];
    let [known, unknown] = drains.map(|drain| drain.finish(SOON * 2));
    let (known, unknown) = (known?.verdict, unknown?.verdict);
    let told = |pod: &str| events(cluster.api(), pod);
    let both = BTreeSet::from(["DrainBound Warning", "DrainStarted Normal"].map(str::to_owned));
    await_condition("both Events", SOON, || told(&pods[0]).is_ok_and(|told| told == both))?;
    unknown_agent.process().wait_for_line("the Event could not be written", SOON)?;
    ensure!(told(&pods[1])?.is_empty(), "an Event without the right to write it");
    let lasted = known["durationMs"].as_u64().unwrap_or_default();
    ensure!(known["reason"] == "bound" && (4000..7000).contains(&lasted), "{known:#}");
    ensure!(unknown["reason"] == "unverified" && unknown["notObserved"][0]["what"] == "pod", "{unknown:#}");
    Ok(())
}
