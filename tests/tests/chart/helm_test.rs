//! The pod of `helm test` on a real kubelet: what it finds with the rights and the capabilities of each variant.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    await_condition,
    kubernetes::{AGENT_IMAGE, Cluster, ClusterConfig},
    manifests::kind,
};
use serde_json::{Value, json};

use crate::variants::release_in_the_lab;

/// A kubelet looks at a new pod every second, and its image is there.
const SOON: Duration = Duration::from_secs(40);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Installs a release, makes its test's pod as `helm test` does, and returns what it wrote.
fn run(cluster: &Cluster, name: &str, mut values: Value) -> Result<String> {
    let (repository, tag) = AGENT_IMAGE.split_once(':').context("an image with a tag")?;
    values["image"] = json!({"repository": repository, "tag": tag, "pullPolicy": "Never"});
    let (tests, installed): (Vec<_>, Vec<_>) = release_in_the_lab(name, values)?
        .into_iter()
        .partition(|manifest| manifest["metadata"]["annotations"]["helm.sh/hook"] == "test");
    for manifest in &installed {
        cluster.api().create(manifest).with_context(|| format!("{manifest:#}"))?;
    }
    let [mut pod] = <[Value; 1]>::try_from(tests).ok().context("not one test")?;
    ensure!(kind(&pod) == "Pod", "{pod:#}");
    // There is no scheduler.
    pod["spec"]["nodeName"] = json!("node-d");
    let made = cluster.api().post(PODS, &pod)?;
    let text = |key: &str| made["metadata"][key].as_str().map(str::to_owned).context("a Pod with a name and a UID");
    let (pod, uid) = (text("name")?, text("uid")?);
    let look = || cluster.api().get(&format!("{PODS}/{pod}"));
    let written = || cluster.kubelet()?.log(&pod, &uid, "check");
    let phase = |object: &Value| object["status"]["phase"].as_str().unwrap_or_default().to_owned();
    let is_over = || look().is_ok_and(|object| ["Succeeded", "Failed"].contains(&phase(&object).as_str()));
    await_condition(&format!("the end of {pod}"), SOON, is_over)
        .with_context(|| format!("{:#}", look().map_or(Value::Null, |object| object["status"].clone())))?;
    let (ended, log) = (look()?, written()?);
    ensure!(phase(&ended) == "Succeeded", "{:#}\n{log}", ended["status"]);
    Ok(log)
}

#[test]
fn the_test_finds_every_right_and_the_sensor_of_its_variant() -> Result<()> {
    let cluster = Cluster::with(&ClusterConfig { kubelet: true, ..ClusterConfig::default() })?;
    for (security, sensor) in [
        ("bpf", ["ok    tcx ", "ok    clsact "].as_slice()),
        ("compat", &["ok    tcx ", "ok    clsact "]),
        ("net-raw", &["ok    packet "]),
        ("none", &["warn  sensor "]),
    ] {
        let table = run(&cluster, security, json!({"security": security}))?;
        let has = |line: &str| table.contains(line);
        ensure!(sensor.iter().any(|line| has(line)), "{security}: none of {sensor:?} in\n{table}");
        for right in ["api", "endpointslices", "services", "nodes", "pod"] {
            ensure!(has(&format!("ok    {right} ")), "{security}: {right} is not granted:\n{table}");
        }
        // The downward API has told it who it is.
        ensure!(!has("not set: ") && !has("FAIL"), "{security}: {table}");
    }
    // It does look: without rights it says so, and what each costs.
    let table = run(&cluster, "nothing", json!({"rbac": {"create": false}}))?;
    for right in ["endpointslices", "services", "nodes", "pod"] {
        ensure!(table.contains(&format!("warn  {right} ")), "{right}:\n{table}");
    }
    Ok(())
}
