//! The agent's part of the pod: its containers, its volumes, and the fields that are for the whole pod.

use super::{
    choices::Choices,
    node::{Map, Node},
};

const PARTS: &str = include_str!("agent.yaml");

/// What of the pod decides about its agent.
pub(super) struct Facts {
    /// Seconds that the server has to stop.
    pub(super) stop_reserve: u64,
    /// Variables of the configuration beside the bounds, by their names in order.
    pub(super) variables: Vec<(&'static str, String)>,
    pub(super) on_the_node: bool,
}

/// Adds the agent to a pod's `spec`; nothing where a field is not of the kind that it has to be.
pub(super) fn add(pod: &mut Map, choices: &Choices, facts: &Facts) -> Option<()> {
    let parts: Node = serde_saphyr::from_str(PARTS).ok()?;
    let mut install = parts.get("install")?.clone();
    install.as_map_mut()?.set("image", Node::text(&choices.image));
    let mut sidecar = parts.get("sidecar")?.clone();
    let agent = sidecar.as_map_mut()?;
    agent.set("image", Node::text(&choices.image));
    let security = if facts.on_the_node { "node" } else { choices.security };
    agent.set("securityContext", parts.at(&["security", security])?.clone());
    let bounds = [
        ("LASTSYN_DRAIN_MAX_WAIT", format!("{}s", choices.max_wait)),
        ("LASTSYN_DRAIN_STOP_RESERVE", format!("{}s", facts.stop_reserve)),
        ("LASTSYN_SERVER_ADDRESS", format!("[::]:{}", super::PORT)),
    ];
    for (name, value) in bounds.into_iter().chain(facts.variables.iter().cloned()) {
        agent.list_at("env")?.push(Node::map([("name", Node::text(name)), ("value", Node::text(value))]));
    }
    if !choices.native {
        agent.remove("restartPolicy");
    }
    // In front of the others: native sidecars end in the reverse order, and the agent outlives them.
    let mut first = vec![install];
    if choices.native {
        first.push(sidecar);
    } else {
        pod.list_at("containers")?.push(sidecar);
    }
    pod.list_at("initContainers")?.splice(0..0, first);
    pod.list_at("volumes")?.extend(parts.get("volumes")?.items().iter().cloned());
    pod.set("terminationGracePeriodSeconds", Node::Unsigned(choices.max_wait.checked_add(facts.stop_reserve)?));
    Some(())
}
