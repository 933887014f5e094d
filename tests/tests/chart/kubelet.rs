//! The chart's example on a real kubelet: its pod is replaced under load.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    PacedClient, Summary, agent_log,
    kubernetes::{AGENT_IMAGE, Cluster, ClusterConfig, Deployment, WEB_IMAGE},
    manifests::kind,
};
use serde_json::{Value, json};

use crate::variants::{Example, render};

/// The example with the lab's images, one pod, and clients' connections from every node.
#[test]
fn the_example_is_replaced_without_a_lost_connection() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    let (repository, tag) = AGENT_IMAGE.split_once(':').context("an image with a tag")?;
    let values = json!({
        "replicas": 1, "image": WEB_IMAGE, "imagePullPolicy": "Never",
        "lastsyn": {"image": {"repository": repository, "tag": tag, "pullPolicy": "Never"}},
    });
    let mut deployment = Value::Null;
    let mut service = Value::Null;
    for mut manifest in render(&Example::new()?.chart, values)? {
        if let Some(namespace) = manifest.pointer_mut("/metadata/namespace") {
            *namespace = json!("default");
        }
        for subject in manifest.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
            subject["namespace"] = json!("default");
        }
        match kind(&manifest) {
            "Deployment" => deployment = manifest,
            "Service" => service = cluster.api().post("/api/v1/namespaces/default/services", &manifest)?,
            _ => cluster.api().create(&manifest)?,
        }
    }
    let deployment = Deployment::of(&cluster, deployment)?;
    let addresses = service["spec"]["clusterIPs"].as_array().context("a Service without addresses")?;
    let targets = addresses
        .iter()
        .map(|address| Ok(SocketAddr::new(address.as_str().context("an address")?.parse()?, 80)))
        .collect::<Result<Vec<_>>>()?;
    ensure!(targets.len() == 2, "{service:#}");
    let clients = cluster
        .nodes()
        .iter()
        .map(|node| PacedClient::start_served(node.host(), targets.clone(), 15))
        .collect::<Result<Vec<_>>>()?;

    let (pod, uid) = deployment.only_pod()?;
    let (mut log, kubelet) = (String::new(), cluster.kubelet()?);
    deployment.restart(0, || {
        if let Ok(longer) = kubelet.log(&pod, &uid, "lastsyn") {
            log = longer;
        }
    })?;
    let mut attempts = Vec::new();
    for client in clients {
        attempts.extend(client.stop()?);
    }
    let summary = Summary::of(&attempts);
    let verdict = agent_log::verdict(&log).with_context(|| format!("the agent wrote no verdict:\n{log}"))?;
    ensure!(summary.lost() == 0 && summary.served.len() == 2, "{summary}\n{verdict:#}");
    // With the rights and capabilities that the chart gives, nothing but a node's wait is unobserved.
    let missing = verdict["notObserved"].as_array().context("no list")?;
    ensure!(missing.iter().all(|entry| entry["what"] == "sync"), "{verdict:#}");
    ensure!(["tcx", "clsact"].map(|name| json!(name)).contains(&verdict["sensor"]["strategy"]), "{verdict:#}");
    ensure!(
        verdict["listeners"].as_array().is_some_and(|list| list.iter().all(|one| one["port"] == 8080)),
        "{verdict:#}"
    );
    Ok(())
}
