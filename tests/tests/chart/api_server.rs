//! A real API server takes what the chart makes, with every field known to it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    await_condition,
    kubernetes::{Api, Cluster, Mode},
    manifests::{self, kind},
};
use serde_json::{Value, json};

use crate::variants::{Example, NAMESPACE, chart, of_a_release, of_the_sidecar, render};

/// For what a controller does in tens of milliseconds.
const SOON: Duration = Duration::from_secs(20);

/// Prometheus Operator's resource, as far as the chart makes use of it: what else is in a `PodMonitor` is refused.
const POD_MONITOR: &str = include_str!("pod_monitor.yaml");
/// The same of a `ServiceMonitor`.
const SERVICE_MONITOR: &str = include_str!("service_monitor.yaml");

/// The same of a `PrometheusRule`.
const PROMETHEUS_RULE: &str = include_str!("prometheus_rule.yaml");

/// The levels of Pod Security, from the strictest on.
const LEVELS: [&str; 3] = ["restricted", "baseline", "privileged"];

#[test]
fn a_real_api_server_takes_every_manifest_of_every_variant() -> Result<()> {
    let cluster = Cluster::up(Mode::Nftables)?;
    let api = cluster.api();
    for namespace in [NAMESPACE, "edge"] {
        namespace_of(api, namespace, "privileged")?;
    }
    know_monitors(api)?;
    let example = Example::new()?;
    for (name, values) in of_the_sidecar() {
        let manifests = example.render(&values)?;
        ensure!(manifests.len() >= 4, "{name}: {manifests:#?}");
        take(api, name, &manifests)?;
    }
    for (name, values) in of_a_release() {
        take(api, name, &render(&chart(), values)?)?;
    }
    // It does look.
    let unknown =
        json!({"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "prots": []}});
    ensure!(api.dry_run(&unknown)?.is_err(), "an unknown field was taken");

    the_table_tells_the_level_of_pod_security(api, &example)
}

fn take(api: &Api, variant: &str, manifests: &[Value]) -> Result<()> {
    for manifest in manifests {
        let what = || format!("{variant}: {manifest:#}");
        // Pods are refused whose account is not there.
        if kind(manifest) == "ServiceAccount" && api.create(manifest).is_ok() {
            continue;
        }
        match api.dry_run(manifest).with_context(what)? {
            // The account of an earlier variant.
            Err(refused) if refused.code == 409 && kind(manifest) == "ServiceAccount" => {}
            taken => taken.with_context(what)?,
        }
    }
    Ok(())
}

/// Each variant's pods are taken at the level that the README's table says, and refused at the next stricter one.
fn the_table_tells_the_level_of_pod_security(api: &Api, example: &Example) -> Result<()> {
    for level in LEVELS {
        namespace_of(api, level, level)?;
    }
    let readme = chart().file("README.md")?;
    for security in ["bpf", "compat", "net-raw", "none"] {
        let row = readme.lines().find(|line| line.starts_with(&format!("| `{security}` |"))).context("no row")?;
        let told = row.split('|').nth(5).context("no level")?.trim().trim_matches('`');
        let user_namespace = row.split('|').nth(6).context("no user namespace")?.trim() == "yes";
        for host_users in [true, false].iter().filter(|host_users| **host_users || user_namespace) {
            let mut pod = example.pod(&json!({"security": security, "hostUsers": host_users}))?;
            pod["serviceAccountName"] = json!("default");
            let taken_at = |level: &&&str| {
                let pod = json!({"kind": "Pod", "metadata": {"name": "web", "namespace": level}, "spec": pod});
                api.dry_run(&pod).is_ok_and(|taken| taken.is_ok())
            };
            let strictest = LEVELS.iter().find(taken_at);
            let strictest = strictest.with_context(|| format!("no level takes {security}: {pod:#}"))?;
            ensure!(*strictest == told, "{security}: the table says `{told}`, the API server {strictest}");
        }
        // What the table says cannot be had is refused before it comes to a cluster.
        let refused = example.pod(&json!({"security": security, "hostUsers": false})).is_err();
        ensure!(refused != user_namespace, "{security} with hostUsers: false");
    }
    Ok(())
}

fn namespace_of(api: &Api, name: &str, level: &str) -> Result<()> {
    api.create_namespace(name, level)?;
    let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
    await_condition("the namespace's account", SOON, || api.get(&account).is_ok())
}

fn know_monitors(api: &Api) -> Result<()> {
    for (definition, kinds) in
        [(POD_MONITOR, "podmonitors"), (SERVICE_MONITOR, "servicemonitors"), (PROMETHEUS_RULE, "prometheusrules")]
    {
        let definition = manifests::read(definition)?;
        api.create(definition.first().context("no definition")?)?;
        let all = format!("/apis/monitoring.coreos.com/v1/namespaces/default/{kinds}");
        await_condition(&format!("the kind of {kinds}"), SOON, || api.get(&all).is_ok())?;
    }
    Ok(())
}
