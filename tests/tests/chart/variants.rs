//! The variants that the documentation names: those of the sidecar, in the example that includes it, and those of a release.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use lastsyn_tests::{
    helm::{Chart, Release},
    manifests,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The namespace of everything that is rendered.
pub(crate) const NAMESPACE: &str = "shop";

/// The example, with the chart as its dependency.
pub(crate) struct Example {
    pub(crate) chart: Chart,
    _directory: TempDir,
}

/// The chart itself.
pub(crate) fn chart() -> Chart {
    Chart::of_the_repository("lastsyn")
}

/// Values of the sidecar, by the variant's name.
pub(crate) fn of_the_sidecar() -> Vec<(&'static str, Value)> {
    vec![
        ("as it comes", json!({})),
        ("plain container", json!({"mode": "container"})),
        ("observe only", json!({"config": {"mode": "observe"}})),
        ("compat", json!({"security": "compat"})),
        ("net-raw", json!({"security": "net-raw"})),
        ("net-raw, user namespace", json!({"security": "net-raw", "hostUsers": false})),
        ("none", json!({"security": "none"})),
        ("none, user namespace", json!({"security": "none", "hostUsers": false})),
        ("another port", json!({"port": 19999})),
        ("without the cluster", json!({"config": {"routing": {"enabled": false}}})),
        ("a fence elsewhere", json!({"fence": {"url": "http://fence.elsewhere:81"}})),
        ("told by the fence", json!({"fence": {"url": "http://fence.elsewhere", "source": "fence"}})),
        ("an account of one's own", json!({"serviceAccount": {"create": false, "name": "own"}})),
        (
            "a seccomp profile of one's own",
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}),
        ),
        ("by digest", json!({"image": {"digest": format!("sha256:{}", "0".repeat(64))}})),
        ("slow", json!({"maxWait": "2m30s", "stopReserve": "30s"})),
    ]
}

/// Values of a release of the chart by itself.
pub(crate) fn of_a_release() -> Vec<(&'static str, Value)> {
    let agents = json!([
        {"namespace": "edge", "serviceAccounts": ["gateway", "other"]},
        {"namespace": NAMESPACE, "serviceAccounts": ["web"]},
    ]);
    let network = json!({
        "create": true, "apiServer": {"cidrs": ["10.10.0.1/32", "fd00:10::1/128"]}, "nodes": {"cidrs": ["10.10.0.0/24"]},
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    });
    vec![
        ("as it comes", json!({})),
        ("for several namespaces", json!({"agents": agents})),
        ("without nodes", json!({"rbac": {"nodes": false}})),
        ("without rights", json!({"rbac": {"create": false}})),
        ("network policy", json!({"networkPolicy": network, "agents": agents})),
        ("pod monitor", json!({"podMonitor": {"create": true, "labels": {"release": "prometheus"}}, "agents": agents})),
        (
            "alerts and the dashboard",
            json!({"prometheusRule": {"create": true, "labels": {"release": "prometheus"}}, "dashboard": {"create": true}}),
        ),
        ("a fence", json!({"fence": {"enabled": true}})),
        (
            "a fence that tells, with everything",
            json!({
                "fence": {
                    "enabled": true, "source": "fence", "replicas": 3, "port": 81, "priorityClassName": "system-cluster-critical",
                    "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
                    "serviceMonitor": {"create": true, "labels": {"release": "prometheus"}},
                },
                "networkPolicy": network, "agents": agents,
                "config": {"routing": {"ignoreNodes": "a=b", "watchLag": "4s"}, "fence": {"spacing": "2s"}},
            }),
        ),
        ("a fence for whoever comes", json!({"fence": {"enabled": true}, "config": {"fence": {"callers": "any"}}})),
        ("unprivileged check", json!({"security": "none"})),
        ("no check", json!({"check": {"create": false}})),
    ]
}

/// Every manifest of a chart with values, whatever its file.
pub(crate) fn render(chart: &Chart, values: Value) -> Result<Vec<Value>> {
    let files =
        chart.render(&Release { name: "web", namespace: NAMESPACE, values })?.map_err(|error| anyhow!(error))?;
    Ok(files.into_values().flatten().collect())
}

/// Every manifest of a release of the chart by itself, in the lab's namespace.
pub(crate) fn release_in_the_lab(name: &str, values: Value) -> Result<Vec<Value>> {
    let files = chart().render(&Release { name, namespace: "default", values })?.map_err(|error| anyhow!(error))?;
    Ok(files.into_values().flatten().collect())
}

// === impl Example ===

impl Example {
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let chart = Chart::of_the_repository("examples/haproxy").with_dependency(&chart(), directory.path())?;
        Ok(Self { chart, _directory: directory })
    }

    /// Its manifests, with values of the sidecar.
    pub(crate) fn render(&self, sidecar: &Value) -> Result<Vec<Value>> {
        render(&self.chart, json!({"lastsyn": sidecar}))
    }

    /// The `spec` of its pods.
    pub(crate) fn pod(&self, sidecar: &Value) -> Result<Value> {
        let manifests = self.render(sidecar)?;
        manifests.iter().find_map(manifests::pod_spec).cloned().context("the example makes no pods")
    }

    /// Why Helm refuses values of the sidecar.
    pub(crate) fn refusal(&self, sidecar: &Value) -> Result<String> {
        let release = Release { name: "web", namespace: NAMESPACE, values: json!({"lastsyn": sidecar}) };
        self.chart.render(&release)?.err().context("Helm took the values")
    }
}

/// The plain variables of a container, and those of the downward API with their fields.
pub(crate) fn variables(container: &Value) -> (Vec<(String, String)>, BTreeMap<String, String>) {
    let mut plain = Vec::new();
    let mut fields = BTreeMap::new();
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        match (variable["value"].as_str(), variable.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str)) {
            (Some(value), _) => plain.push((name, value.to_owned())),
            (None, Some(field)) => drop(fields.insert(name, field.to_owned())),
            (None, None) => plain.push((name, String::new())),
        }
    }
    (plain, fields)
}
