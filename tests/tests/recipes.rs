//! The recipes: a real API server takes each, the servers that are here take their configurations, and the agent's part is
//! what the chart makes.

#![expect(clippy::indexing_slicing, reason = "what is missing in a manifest fails the test")]

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn::config::{self, Arguments};
use lastsyn_tests::{
    Agent, AgentConfig, Nginx, Outcome, Pair, connect_once,
    helm::{Chart, Release},
    http,
    kubernetes::{Cluster, Mode},
    manifests::{self, container, kind, pod_spec},
    process::Stream,
    program, program_of_the_cache,
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// What Envoy Gateway's resource carries is for its own controller: the kind alone is known here.
const ENVOY_PROXY: &str =
    "{kind: CustomResourceDefinition, metadata: {name: envoyproxies.gateway.envoyproxy.io}, spec: {
  group: gateway.envoyproxy.io, scope: Namespaced,
  names: {kind: EnvoyProxy, plural: envoyproxies, singular: envoyproxy, listKind: EnvoyProxyList},
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {
    type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}]}}";

/// Every recipe's manifests, by the name of its file.
fn recipes() -> Result<BTreeMap<String, Vec<Value>>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recipes");
    let mut recipes = BTreeMap::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
            let read = manifests::read(&fs::read_to_string(&path)?).context(name.clone())?;
            recipes.insert(name, read);
        }
    }
    ensure!(recipes.len() >= 14, "{:?}", recipes.keys());
    Ok(recipes)
}

/// The pods of a recipe; Envoy Gateway's are those of a patch.
fn pod(manifests: &[Value]) -> Option<&Value> {
    const PATCH: &str = "/spec/provider/kubernetes/envoyDeployment/patch/value/spec/template/spec";
    manifests.iter().find_map(|manifest| pod_spec(manifest).or_else(|| manifest.pointer(PATCH)))
}

#[test]
fn a_real_api_server_takes_every_recipe() -> Result<()> {
    let cluster = Cluster::up(Mode::Nftables)?;
    cluster.api().create(&serde_saphyr::from_str(ENVOY_PROXY)?)?;
    lastsyn_tests::await_condition("the kind EnvoyProxy", Duration::from_secs(20), || {
        cluster.api().get("/apis/gateway.envoyproxy.io/v1alpha1/namespaces/default/envoyproxies").is_ok()
    })?;
    for (name, manifests) in recipes()? {
        for manifest in &manifests {
            let what = || format!("{name}: {manifest:#}");
            cluster.api().dry_run(manifest).with_context(what)?.with_context(what)?;
            // As a kubelet would be given it, which the checks of a Deployment do not do in full.
            if let Some(spec) = pod_spec(manifest) {
                let mut spec = spec.clone();
                spec["serviceAccountName"] = json!("default");
                let pod = json!({"kind": "Pod", "metadata": {"name": "one"}, "spec": spec});
                cluster.api().dry_run(&pod).with_context(what)?.with_context(what)?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_agents_part_of_every_recipe_is_what_the_chart_makes() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let example = Chart::of_the_repository("examples/haproxy")
        .with_dependency(&Chart::of_the_repository("lastsyn"), directory.path())?;
    let release = Release { name: "web", namespace: "default", values: json!({}) };
    let rendered: Vec<Value> = example.render(&release)?.map_err(anyhow::Error::msg)?.into_values().flatten().collect();
    let made = pod(&rendered).context("the example makes no pods")?;
    // What a recipe may differ in: its configuration, further volumes, and with hostNetwork the rights.
    let part = |pod: &Value, name: &str| -> Result<Value> {
        let mut part = container(pod, name).with_context(|| format!("no container {name}"))?.clone();
        let on_the_node = pod["hostNetwork"] == true;
        if let Some(part) = part.as_object_mut() {
            part.remove("env");
            if let Some(mounts) = part.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| mount["name"].as_str().is_some_and(|name| name.starts_with("lastsyn")));
            }
            if on_the_node && name == "lastsyn" {
                part.insert(
                    "securityContext".to_owned(),
                    container(made, name).context("none")?["securityContext"].clone(),
                );
            }
        }
        Ok(part)
    };
    for (name, manifests) in recipes()? {
        let Some(pod) = pod(&manifests) else {
            ensure!(name == "rights.yaml", "{name} has no pods");
            continue;
        };
        for container in ["lastsyn", "lastsyn-install"] {
            let (own, wanted) = (part(pod, container).context(name.clone())?, part(made, container)?);
            ensure!(own == wanted, "{name}: {own:#}\nand not {wanted:#}");
        }
        let agent = container(pod, "lastsyn").context("no agent")?;
        let variables = agent["env"].as_array().into_iter().flatten().filter_map(|variable| {
            Some((variable["name"].as_str()?.to_owned(), variable["value"].as_str()?.to_owned()))
        });
        let config = config::load(&Arguments::default(), variables).with_context(|| name.clone())?;
        let bound = config.drain.bound().as_secs();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().context("no grace period")?;
        ensure!(
            grace == bound + config.drain.stop_reserve.as_secs(),
            "{name}: {grace}, and {bound} of them for the drain"
        );
        for server in pod["containers"].as_array().into_iter().flatten() {
            let hook = &server["lifecycle"]["preStop"]["exec"]["command"];
            let wanted = json!(["/run/lastsyn/lastsyn", "drain", "--max-wait", format!("{}s", bound + 1)]);
            ensure!(*hook == wanted, "{name}: {server:#}");
        }
    }
    Ok(())
}

#[test]
fn the_rights_are_those_of_the_chart() -> Result<()> {
    let rights = recipes()?.remove("rights.yaml").context("no rights")?;
    let release = Release { name: "lastsyn", namespace: "default", values: json!({"check": {"create": false}}) };
    let rendered = Chart::of_the_repository("lastsyn").render(&release)?.map_err(anyhow::Error::msg)?;
    let mut rendered: Vec<Value> = rendered.into_values().flatten().collect();
    for manifest in &mut rendered {
        if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("labels");
            metadata.remove("namespace");
        }
    }
    ensure!(rights == rendered, "{rights:#?}\nand not {rendered:#?}");
    Ok(())
}

#[test]
fn the_servers_take_their_configurations() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut checked = BTreeMap::new();
    for (name, manifests) in recipes()? {
        for data in
            manifests.iter().filter(|manifest| kind(manifest) == "ConfigMap").filter_map(|map| map["data"].as_object())
        {
            for (file, text) in data {
                // The place of its socket is a volume of the pod.
                let text = text.as_str().context("a text")?.replace("/run/haproxy/", "/tmp/");
                let path = directory.path().join(file);
                fs::write(&path, text)?;
                let mut command = match file.as_str() {
                    "haproxy.cfg" => command(program("haproxy")?, &["-c", "-f"], &path),
                    "envoy.yaml" => {
                        command(program_of_the_cache("envoy-1.40.0/envoy")?, &["--mode", "validate", "-c"], &path)
                    }
                    "nginx.conf" => {
                        let nginx = program("nginx").or_else(|_none| program_of_the_cache("nginx/usr/sbin/nginx"))?;
                        command(nginx, &["-t", "-e", "stderr", "-c"], &path)
                    }
                    other => anyhow::bail!("{name} has {other}, and no server is known that reads it"),
                };
                let output = command.output().with_context(|| format!("{command:?}"))?;
                ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                *checked.entry(file.clone()).or_insert(0) += 1;
            }
        }
    }
    ensure!(checked.len() == 3, "{checked:?}");
    Ok(())
}

/// The agent and the hooks of a recipe as they stand there, in a pod with a server on the recipe's port: what readiness says after
/// the drain, if the agent answers for it. The server listens on all the while.
fn drained(recipe: &str) -> Result<Option<u16>> {
    let recipes = recipes()?;
    let spec = recipes.get(recipe).and_then(|manifests| pod(manifests)).with_context(|| format!("no {recipe}"))?;
    let agent = container(spec, "lastsyn").context("no agent")?;
    let mut config = AgentConfig::default();
    for variable in agent["env"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (variable["name"].as_str(), variable["value"].as_str()) {
            config = config.env(name, value);
        }
    }
    let server = container(spec, "server").context("no server")?;
    let port =
        server["ports"][0]["containerPort"].as_u64().and_then(|port| u16::try_from(port).ok()).context("a port")?;
    let arguments = |of: &Value| -> Vec<String> {
        let words = of["lifecycle"]["preStop"]["exec"]["command"].as_array().into_iter().flatten();
        words.skip(2).filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };

    let pair = Pair::new()?;
    let _nginx = Nginx::start(&pair.pod, "web", port)?;
    let running = Agent::start(&pair.pod, config)?;
    let path = server["readinessProbe"]["httpGet"]["path"].as_str().unwrap_or_default().to_owned();
    let asks_agent = server["readinessProbe"]["httpGet"]["port"] == running.address().port();
    let readiness = || http::get(&pair.pod, running.address(), &path, SOON).map(|answer| answer.status);
    if asks_agent {
        ensure!(readiness()? == 200, "{recipe}: not ready before the drain");
    }
    running.hook(arguments(agent))?.wait_for_success(SOON)?;
    let hook = running.hook(arguments(server))?;
    hook.wait_for_success(SOON)?;
    ensure!(hook.text(Stream::Output).starts_with("quiet"), "{}", hook.report());
    for target in pair.targets(port) {
        let late = connect_once(&pair.client, target, SOON);
        ensure!(matches!(late.outcome, Outcome::Served { .. }), "{recipe}: {:?} after the drain", late.outcome);
    }
    asks_agent.then(readiness).transpose()
}

#[test]
fn a_plain_server_is_drained_and_told_nothing() -> Result<()> {
    ensure!(drained("plain-server.yaml")?.is_none(), "its readiness is its own");
    Ok(())
}

#[test]
fn a_server_that_is_scaled_to_zero_is_not_ready_and_listens_on() -> Result<()> {
    let status = drained("scale-to-zero.yaml")?;
    ensure!(status == Some(503), "{status:?}");
    Ok(())
}

fn command(program: std::path::PathBuf, arguments: &[&str], file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(file);
    command
}
