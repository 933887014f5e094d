//! W8: a mesh whose proxy takes the pod's connections is named, by the pod's object and by its proxy's ports, and nothing is claimed
//! of its clients; the operator may acknowledge it.

use std::time::Duration;

use anyhow::{Result, ensure};
use lastsyn_tests::{
    AgentConfig, Server, ServerConfig,
    kubernetes::{ClusterConfig, Ended, PORT, Scene, Workload},
};
use serde_json::{Value, json};

const HOOK: Duration = Duration::from_mins(1);
/// What an Istio sidecar listens on.
const PROXY_PORTS: [u16; 2] = [15_001, 15_006];

/// An agent that watches the server's port alone, as a proxy that stays would keep it.
fn config() -> AgentConfig {
    AgentConfig::default().env("LASTSYN_LISTENERS_WATCH", PORT.to_string())
}

/// The meshes that a verdict names.
fn meshes(ended: &Ended) -> Vec<(String, String)> {
    let not_observed = ended.verdict.get("notObserved").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_mesh = |entry: &&Value| text(entry, "what") == "mesh";
    not_observed.iter().filter(of_mesh).map(|entry| (text(entry, "name"), text(entry, "why"))).collect()
}

fn proxy(workload: &Workload) -> Result<Vec<Server>> {
    let serve = |port| Server::start(workload.pod.host(), ServerConfig { port, ..ServerConfig::default() });
    PROXY_PORTS.into_iter().map(serve).collect()
}

#[test]
fn w8_a_mesh_is_named_and_may_be_acknowledged() -> Result<()> {
    let scene = Scene::up(&ClusterConfig::default(), |service| service)?;

    let workload = scene.workload(0, "plain", config())?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure!(meshes(&ended).is_empty() && ended.by_evidence_or_wait(), "{:#}", ended.verdict);

    let workload = scene.workload(0, "by-ports", config())?;
    let _proxy = proxy(&workload)?;
    let ended = workload.delete()?.finish(HOOK)?;
    let [(name, why)] = &meshes(&ended)[..] else { anyhow::bail!("{:#}", ended.verdict) };
    ensure!(name == "istio" && why.contains("15001 and 15006"), "{why}");
    ensure!(ended.reason() == "unverified", "{:#}", ended.verdict);

    let workload = scene.workload(0, "by-annotation", config())?;
    let _proxy = proxy(&workload)?;
    let annotation = json!({"metadata": {"annotations": {"sidecar.istio.io/status": "{}"}}});
    scene.cluster.api().patch("/api/v1/namespaces/default/pods/by-annotation", &annotation)?;
    let ended = workload.delete()?.finish(HOOK)?;
    let [(name, why)] = &meshes(&ended)[..] else { anyhow::bail!("{:#}", ended.verdict) };
    ensure!(name == "istio" && why.contains("sidecar.istio.io/status"), "{why}");

    // Neither leads anywhere but from a port that nobody uses.
    let workload = scene.workload(0, "by-rule", config())?;
    workload.pod.host().nft(
        "table inet mesh {\n\
         chain inner { tcp dport 9 redirect to :10\n }\n\
         chain incoming { type nat hook prerouting priority dstnat\n jump inner\n }\n}\n",
    )?;
    let ended = workload.delete()?.finish(HOOK)?;
    let [(name, why)] = &meshes(&ended)[..] else { anyhow::bail!("{:#}", ended.verdict) };
    ensure!(name == "redirect" && why.contains("chain inner of table inet mesh"), "{why}");
    ensure!(ended.reason() == "unverified", "{:#}", ended.verdict);

    let workload = scene.workload(0, "by-iptables", config())?;
    for (chain, rule) in [("OUTPUT", "outgoing"), ("PREROUTING", "incoming")] {
        let mut iptables = workload.pod.host().command("iptables")?;
        iptables.args(["-t", "nat", "-A", chain, "-p", "tcp", "--dport", "9", "-j", "REDIRECT", "--to-ports", "10"]);
        let output = iptables.args(["-m", "comment", "--comment", rule]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let ended = workload.delete()?.finish(HOOK)?;
    let [(name, why)] = &meshes(&ended)[..] else { anyhow::bail!("{:#}", ended.verdict) };
    ensure!(name == "redirect" && why.contains("chain PREROUTING of table ip nat"), "{why}");

    let workload = scene.workload(0, "acknowledged", config().env("LASTSYN_ROUTING_ACCEPT", "[mesh/istio]"))?;
    let _proxy = proxy(&workload)?;
    let ended = workload.delete()?.finish(HOOK)?;
    ensure!(meshes(&ended).is_empty() && ended.by_evidence_or_wait(), "{:#}", ended.verdict);
    Ok(())
}
