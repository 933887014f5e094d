//! What becomes of a workload: its pods get the agent, the hook, and the account.

use std::collections::BTreeMap;

use super::{
    account,
    choices::Choices,
    error::InjectError,
    hook,
    node::Node,
    probes::{self, Probe},
    sidecar::{self, Facts},
    workload::{self, title},
};
use crate::config::Url;

/// What the server has to stop where its workload does not say, in seconds: the chart's.
const STOP_RESERVE: u64 = 10;

/// What was done.
pub(super) struct Injected {
    pub(super) account: account::Chosen,
    /// What whoever applies it should know, a sentence each.
    pub(super) remarks: Vec<String>,
}

/// Changes a workload; nothing is to be changed where its pods have an agent.
///
/// # Errors
/// What rules it out.
pub(super) fn inject(manifest: &mut Node, choices: &Choices) -> Result<Option<Injected>, InjectError> {
    let title = title(manifest);
    let shape = |what| InjectError::Shape { workload: title.clone(), what };
    let name = manifest.text_at(&["metadata", "name"]).to_owned();
    let template = manifest.at_mut(&["spec", "template"]).and_then(Node::as_map_mut);
    let template = template.ok_or_else(|| shape("spec.template"))?;
    let pod = template.get_mut("spec").ok_or_else(|| shape("spec.template.spec"))?;
    if workload::is_injected(pod) {
        return Ok(None);
    }
    workload::check(&title, pod, choices)?;
    let account = account::choose(&title, &name, pod, choices)?;
    let mut containers = match pod.get("containers") {
        Some(Node::List(containers)) if !containers.is_empty() => containers.clone(),
        _ => return Err(shape("spec.template.spec.containers")),
    };
    let chosen = hook::choose(&title, &containers, choices)?;
    let mut remarks = hook::left_out(&title, &containers, &chosen);
    let mut upstream = BTreeMap::new();
    for place in chosen {
        let Some(container) = containers.get_mut(place) else { continue };
        if !choices.keep_probes {
            remarks.extend(rewire(&title, container, &mut upstream));
        }
        let changed = container.as_map_mut().and_then(|container| hook::add(container, choices.max_wait));
        changed.ok_or_else(|| shape("a container's lifecycle or volumeMounts"))?;
    }
    let facts = facts(&title, pod, &containers, &upstream, choices)?;
    if facts.on_the_node {
        remarks.push(format!(
            "{title}: its pods have hostNetwork, and the agent's container is privileged: its sensor has to see the node's \
             control groups"
        ));
    }
    let fields = pod.as_map_mut().ok_or_else(|| shape("spec.template.spec"))?;
    fields.set("containers", Node::List(containers));
    sidecar::add(fields, choices, &facts).ok_or_else(|| shape("initContainers or volumes"))?;
    fields.set("serviceAccountName", Node::text(&account.name));
    fields.remove("serviceAccount");
    if account.made {
        fields.set("automountServiceAccountToken", Node::Bool(false));
    } else {
        remarks.push(format!(
            "{title}: the ServiceAccount {} has to have the rights of the agent, which docs/cluster.md names",
            account.name
        ));
    }
    let labels = template.map_at("metadata").and_then(|metadata| metadata.map_at("labels"));
    labels.ok_or_else(|| shape("spec.template.metadata.labels"))?.set("lastsyn-agent", Node::text("true"));
    Ok(Some(Injected { account, remarks }))
}

/// What is to be said of a container's probe.
fn rewire(title: &str, container: &mut Node, upstream: &mut BTreeMap<String, String>) -> Option<String> {
    let before = container.clone();
    let name = container.text_at(&["name"]).to_owned();
    let why = match probes::rewire(container) {
        Probe::None => return None,
        Probe::Rewired(url) if url.parse::<Url>().is_ok() => {
            upstream.insert(name, url);
            return None;
        }
        Probe::Rewired(_) => {
            *container = before;
            "asks for a path that is no URL's"
        }
        Probe::Kept(why) => why,
    };
    Some(format!(
        "{title}: the readiness probe of container {name} {why}, and stays as it is: the agent does not fail it"
    ))
}

fn facts(
    title: &str,
    pod: &Node,
    containers: &[Node],
    upstream: &BTreeMap<String, String>,
    choices: &Choices,
) -> Result<Facts, InjectError> {
    let own_grace = pod.get("terminationGracePeriodSeconds").and_then(Node::as_number);
    // What its server had to stop it still has.
    let stop_reserve = choices.stop_reserve.or(own_grace.map(|grace| grace.max(2))).unwrap_or(STOP_RESERVE);
    let on_the_node = pod.get("hostNetwork") == Some(&Node::Bool(true));
    let mut variables = Vec::new();
    if on_the_node {
        let ports = containers.iter().filter_map(|container| container.get("ports")).flat_map(Node::items);
        let tcp = ports.filter(|port| ["", "TCP"].contains(&port.text_at(&["protocol"])));
        let mut numbers: Vec<u64> = tcp.filter_map(|port| port.get("containerPort")?.as_number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Err(InjectError::NoPorts { workload: title.to_owned() });
        }
        variables.push(("LASTSYN_LISTENERS_WATCH", serde_json::json!(numbers).to_string()));
    }
    variables.extend(probes::upstream(upstream).map(|value| ("LASTSYN_READINESS_UPSTREAM", value)));
    if on_the_node {
        variables.push(("LASTSYN_SENSOR_NETWORK", "node".to_owned()));
    }
    Ok(Facts { stop_reserve, variables, on_the_node })
}
