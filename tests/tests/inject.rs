//! `lastsyn inject`: a real API server takes what it makes, and the agent's part of it is what the chart makes of the same choices.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    await_condition,
    helm::{Chart, Release},
    kubernetes::{Cluster, Mode},
    manifests::{self, container, kind, pod_spec},
};
use serde_json::{Value, json};

/// What `agent/tests/inject_golden.rs` knows to be made, by the name of its file.
fn injected() -> Result<BTreeMap<String, Vec<Value>>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/inject");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".out.yaml") else { continue };
        let read = manifests::read(&fs::read_to_string(&path)?).with_context(|| name.to_owned())?;
        let flat = read.into_iter().flat_map(|one| match one.get("items").and_then(Value::as_array) {
            Some(items) => items.clone(),
            None => vec![one],
        });
        all.insert(name.to_owned(), flat.collect());
    }
    ensure!(all.len() >= 7, "{:?}", all.keys());
    Ok(all)
}

/// The pods that have an agent.
fn pod(manifests: &[Value]) -> Result<&Value> {
    let mut pods = manifests.iter().filter_map(pod_spec);
    pods.find(|pod| container(pod, "lastsyn").is_some()).context("no pod has an agent")
}

#[test]
fn a_real_api_server_takes_everything_that_is_made() -> Result<()> {
    let cluster = Cluster::up(Mode::Nftables)?;
    let api = cluster.api();
    api.create_namespace("shop", "privileged")?;
    for namespace in ["shop", "default"] {
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        await_condition("the namespace's account", Duration::from_secs(20), || api.get(&account).is_ok())?;
    }
    for (name, manifests) in injected()? {
        for manifest in &manifests {
            let what = || format!("{name}: {manifest:#}");
            api.dry_run(manifest).with_context(what)?.with_context(what)?;
        }
        // As a kubelet would be given it, which the checks of a Deployment do not do in full.
        let mut spec = pod(&manifests)?.clone();
        let what = || format!("{name}: {:#}", json!(manifests));
        spec["serviceAccountName"] = json!("default");
        if name == "stateful-set" {
            // Its controller makes the volume.
            let volumes = spec["volumes"].as_array_mut().context("no volumes")?;
            volumes.push(json!({"name": "data", "emptyDir": {}}));
        }
        let one = json!({"kind": "Pod", "metadata": {"name": "one"}, "spec": spec});
        api.dry_run(&one).with_context(what)?.with_context(what)?;
    }
    Ok(())
}

#[test]
fn the_agents_part_is_what_the_chart_makes_of_the_same_choices() -> Result<()> {
    let web = json!({"config": {"readiness": {"upstream": {"web": "http://127.0.0.1:8080/ready"}}}});
    let chosen = BTreeMap::from([
        ("single", web),
        ("several", json!({"stopReserve": "45s"})),
        ("all-containers", json!({"mode": "container", "stopReserve": "45s"})),
        ("hook-replaced", json!({"security": "net-raw"})),
        ("list", json!({})),
        ("stateful-set", json!({"stopReserve": "120s"})),
    ]);
    let directory = tempfile::tempdir()?;
    let example = Chart::of_the_repository("examples/haproxy")
        .with_dependency(&Chart::of_the_repository("lastsyn"), directory.path())?;
    let injected = injected()?;
    for (name, values) in chosen {
        let manifests = injected.get(name).with_context(|| format!("no {name}"))?;
        let own = pod(manifests)?;
        let release = Release { name: "web", namespace: "shop", values: json!({"lastsyn": values}) };
        let rendered: Vec<Value> =
            example.render(&release)?.map_err(anyhow::Error::msg)?.into_values().flatten().collect();
        let made = pod(&rendered)?;
        for which in ["lastsyn", "lastsyn-install"] {
            let (mut own, mut wanted) = (container(own, which).cloned(), container(made, which).cloned());
            for one in [&mut own, &mut wanted].into_iter().flatten() {
                // The example's own: the volume of HAProxy's socket, and its configuration.
                let mounts = one["volumeMounts"].as_array_mut().context("no mounts")?;
                mounts.retain(|mount| mount["name"].as_str().is_some_and(|name| name.starts_with("lastsyn")));
                if let Some(variables) = one.get_mut("env").and_then(Value::as_array_mut) {
                    let is_example =
                        |name: &str| name.starts_with("LASTSYN_PROXY_") || name == "LASTSYN_LISTENERS_EXCLUDE";
                    variables.retain(|variable| !variable["name"].as_str().is_some_and(is_example));
                }
            }
            ensure!(own.is_some() && own == wanted, "{name}: {own:#?}\nand not {wanted:#?}");
        }
        let grace = |pod: &Value| pod["terminationGracePeriodSeconds"].clone();
        ensure!(grace(own) == grace(made), "{name}: {} and not {}", grace(own), grace(made));
        let own_volumes = |pod: &Value| -> Vec<Value> {
            let all = pod["volumes"].as_array().cloned().unwrap_or_default();
            all.into_iter()
                .filter(|volume| volume["name"].as_str().is_some_and(|name| name.starts_with("lastsyn")))
                .collect()
        };
        ensure!(own_volumes(own) == own_volumes(made), "{name}: {own:#}");
        let hook = |pod: &Value| {
            let list = pod["containers"].as_array().cloned().unwrap_or_default();
            list.into_iter().find_map(|one| {
                let hook = one.pointer("/lifecycle/preStop")?.clone();
                (one["name"] != "lastsyn").then_some(hook)
            })
        };
        ensure!(hook(own).is_some() && hook(own) == hook(made), "{name}: {own:#}");
        if name == "single" {
            the_rights_are_the_charts(manifests, &rendered)?;
        }
    }
    Ok(())
}

fn the_rights_are_the_charts(injected: &[Value], rendered: &[Value]) -> Result<()> {
    let rights = |of: &[Value]| -> Vec<Value> {
        let is_one =
            |one: &&Value| kind(one) == "ServiceAccount" || one["apiVersion"] == "rbac.authorization.k8s.io/v1";
        let mut rights: Vec<Value> = of.iter().filter(is_one).cloned().collect();
        for one in &mut rights {
            // Who made it.
            drop(one["metadata"].as_object_mut().and_then(|metadata| metadata.remove("labels")));
        }
        rights.sort_by_key(|one| kind(one).to_owned());
        rights
    };
    let (own, wanted) = (rights(injected), rights(rendered));
    ensure!(own.len() == 5 && own == wanted, "{own:#?}\nand not {wanted:#?}");
    Ok(())
}
