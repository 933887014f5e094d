//! What is written into files: the agent's configuration, the chart's values, and manifests or parts of them.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use lastsyn::config::{self, Arguments};
use lastsyn_tests::{
    helm::{Chart, Release},
    kubernetes::{Api, Cluster, Mode},
    manifests,
};
use serde_json::{Value, json};

use crate::blocks::{Block, of};

/// Who reads a block.
enum Reader {
    Agent,
    Chart,
    ApiServer(Vec<Value>),
}

#[test]
fn every_yaml_block_is_taken_by_whatever_reads_it() -> Result<()> {
    let blocks = of("yaml")?;
    ensure!(blocks.len() > 10, "{} blocks: are they read at all?", blocks.len());
    let cluster = Cluster::up(Mode::Nftables)?;
    let mut readers = [0; 3];
    for block in blocks.iter().filter(|block| block.mark.is_none()) {
        let read = || -> Result<usize> {
            Ok(match reader(block)? {
                Reader::Agent => agent_takes(&block.text()).map(|()| 0)?,
                Reader::Chart => chart_takes(&block.text()).map(|()| 1)?,
                Reader::ApiServer(manifests) => api_server_takes(cluster.api(), &manifests).map(|()| 2)?,
            })
        };
        readers[read().with_context(|| format!("{} (or a mark is missing above)", block.place))?] += 1;
    }
    ensure!(readers.iter().all(|count| *count > 0), "{readers:?}");
    Ok(())
}

fn reader(block: &Block) -> Result<Reader> {
    let documents = manifests::read(&block.text())?;
    if documents.iter().all(|document| document.get("kind").is_some()) {
        return Ok(Reader::ApiServer(documents));
    }
    let [document] = documents.as_slice() else { bail!("several documents that are no manifests") };
    let keys: Vec<&str> = document.as_object().context("no keys")?.keys().map(String::as_str).collect();
    let sections: Vec<_> = config::keys().iter().filter_map(|key| key.name().split('.').next()).collect();
    let values: Value = serde_saphyr::from_str(&Chart::of_the_repository("lastsyn").file("values.yaml")?)?;
    Ok(match keys.as_slice() {
        ["spec"] => Reader::ApiServer(vec![pod(document["spec"].clone())]),
        ["rules"] => Reader::ApiServer(vec![role(&document["rules"])]),
        // Parts of a container.
        ["readinessProbe" | "lifecycle" | "livenessProbe"] => {
            Reader::ApiServer(vec![pod(json!({"containers": [document]}))])
        }
        _ if keys.iter().all(|key| sections.contains(key)) => Reader::Agent,
        _ if keys.iter().all(|key| values.get(key).is_some()) => Reader::Chart,
        _ => bail!("nobody is known who reads {keys:?}"),
    })
}

fn role(rules: &Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "one"}, "rules": rules})
}

/// A pod of a spec that leaves out what has nothing to do with it: names, images, and volumes that are the server's own.
fn pod(mut spec: Value) -> Value {
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{}]);
    }
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            container.entry("name").or_insert_with(|| json!("server"));
            container.entry("image").or_insert_with(|| json!("server:1"));
        }
    }
    // The API server takes an account only where it is there.
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("serviceAccountName");
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
}

fn agent_takes(text: &str) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("lastsyn.yaml");
    fs::write(&file, text)?;
    let arguments = Arguments { file: Some(file), values: Vec::new() };
    config::load(&arguments, std::iter::empty::<(String, String)>())?;
    Ok(())
}

fn chart_takes(text: &str) -> Result<()> {
    let release = Release { name: "lastsyn", namespace: "lastsyn-system", values: serde_saphyr::from_str(text)? };
    let rendered = Chart::of_the_repository("lastsyn").render(&release)?.map_err(anyhow::Error::msg)?;
    ensure!(!rendered.is_empty(), "nothing comes of it");
    Ok(())
}

fn api_server_takes(api: &Api, manifests: &[Value]) -> Result<()> {
    for manifest in manifests {
        let mut manifest = manifest.clone();
        // Its namespace need not be there for a dry run of everything else.
        if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("namespace");
        }
        api.dry_run(&manifest)?.with_context(|| format!("{manifest:#}"))?;
    }
    Ok(())
}

#[test]
fn a_text_that_nobody_takes_is_found() -> Result<()> {
    let block = |text: &str| -> Result<Block> {
        let page = format!("```yaml\n{text}\n```\n");
        crate::blocks::read("page", &page)?.pop().context("no block")
    };
    ensure!(reader(&block("somethingElse: 1")?).is_err());
    ensure!(agent_takes("drain: {quietPeriod: 2}").is_err(), "a duration without a unit");
    ensure!(chart_takes("agents: 5").is_err(), "no list");
    ensure!(matches!(reader(&block("drain: {quietPeriod: 2s}")?)?, Reader::Agent));
    Ok(())
}
