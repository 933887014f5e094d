//! What a release lets agents reach, and by what Prometheus finds them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::manifests::{container, kind};
use serde_json::{Value, json};

use crate::variants::{Example, NAMESPACE, chart, of_a_release, render};

fn variant(name: &str) -> Result<Value> {
    let found = of_a_release().into_iter().find(|(variant, _)| *variant == name);
    found.map(|(_, values)| values).with_context(|| format!("there is no variant {name}"))
}

/// The labels of the example's pods, and the ports of its agent by their names.
fn agents_pod() -> Result<(Value, BTreeMap<String, Value>)> {
    let example = Example::new()?;
    let manifests = example.render(&json!({}))?;
    let deployment = manifests.iter().find(|one| kind(one) == "Deployment").context("no Deployment")?;
    let pod = example.pod(&json!({}))?;
    let ports = container(&pod, "lastsyn").context("no agent")?["ports"].as_array().cloned().context("no ports")?;
    let by_name =
        ports.iter().filter_map(|port| Some((port["name"].as_str()?.to_owned(), port["containerPort"].clone())));
    Ok((deployment["spec"]["template"]["metadata"]["labels"].clone(), by_name.collect()))
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object();
    wanted.is_some_and(|wanted| !wanted.is_empty() && wanted.iter().all(|(key, value)| labels[key] == *value))
}

#[test]
fn agents_reach_the_api_server_and_the_nodes_health_and_nothing_else() -> Result<()> {
    let values = variant("network policy")?;
    let manifests = render(&chart(), values.clone())?;
    let policies: Vec<_> = manifests.iter().filter(|one| kind(one) == "NetworkPolicy").collect();
    let namespaces: Vec<_> = policies.iter().map(|policy| &policy["metadata"]["namespace"]).collect();
    ensure!(namespaces == ["edge", NAMESPACE], "{namespaces:?}");
    let (labels, ports) = agents_pod()?;
    let blocks = |cidrs: &[&str]| cidrs.iter().map(|cidr| json!({"ipBlock": {"cidr": cidr}})).collect::<Vec<_>>();
    let port = |number: u16| json!({"protocol": "TCP", "port": number});
    for policy in policies {
        let spec = &policy["spec"];
        ensure!(selects(&spec["podSelector"], &labels), "it selects no agent's pod: {policy:#}");
        ensure!(spec["policyTypes"] == json!(["Ingress", "Egress"]), "{policy:#}");
        let wanted = json!([
            {"to": blocks(&["10.10.0.1/32", "fd00:10::1/128"]), "ports": [port(443), port(6443)]},
            {"to": blocks(&["10.10.0.0/24"]), "ports": [port(10256)]},
        ]);
        ensure!(spec["egress"] == wanted, "{policy:#}");
        let ingress = json!([{
            "from": values["networkPolicy"]["metricsFrom"],
            "ports": [{"protocol": "TCP", "port": ports["lastsyn"]}],
        }]);
        ensure!(spec["ingress"] == ingress, "{policy:#}");
    }
    // A port of no kube-proxy is no way to a node; and who is told of no ingress has none denied.
    let mut without = values;
    without["config"] = json!({"routing": {"kubeProxyHealthzPort": 0}});
    without["networkPolicy"]["metricsFrom"] = json!([]);
    let manifests = render(&chart(), without)?;
    let policy = manifests.iter().find(|one| kind(one) == "NetworkPolicy").context("no policy")?;
    ensure!(policy["spec"]["egress"].as_array().map(Vec::len) == Some(1), "{policy:#}");
    ensure!(policy["spec"]["policyTypes"] == json!(["Egress"]) && policy["spec"].get("ingress").is_none());
    Ok(())
}

#[test]
fn the_pod_monitor_finds_the_agents_of_every_namespace_at_their_port() -> Result<()> {
    let manifests = render(&chart(), variant("pod monitor")?)?;
    let monitor = manifests.iter().find(|one| kind(one) == "PodMonitor").context("no PodMonitor")?;
    let (labels, ports) = agents_pod()?;
    ensure!(selects(&monitor["spec"]["selector"], &labels), "it selects no agent's pod: {monitor:#}");
    ensure!(monitor["spec"]["namespaceSelector"]["matchNames"] == json!(["edge", NAMESPACE]), "{monitor:#}");
    ensure!(monitor["metadata"]["labels"]["release"] == "prometheus", "{monitor:#}");
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    let port = endpoint["port"].as_str().context("a port's name")?;
    ensure!(ports.contains_key(port) && endpoint["path"] == "/metrics", "{monitor:#}");
    Ok(())
}
