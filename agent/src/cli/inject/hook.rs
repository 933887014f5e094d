//! The server's hook: which containers get it, and which are only named.

use super::{
    choices::Choices,
    error::InjectError,
    node::{Map, Node},
};

/// Chooses the containers that get a hook, by their place.
///
/// # Errors
/// When it is not clear which container listens, or one has a hook already.
pub(super) fn choose(title: &str, containers: &[Node], choices: &Choices) -> Result<Vec<usize>, InjectError> {
    let workload = || title.to_owned();
    let name = |container: &Node| container.text_at(&["name"]).to_owned();
    if let Some(missing) =
        choices.containers.iter().find(|wanted| !containers.iter().any(|container| name(container) == **wanted))
    {
        return Err(InjectError::NoContainer { workload: workload(), container: missing.clone() });
    }
    let mut chosen: Vec<usize> = (0..)
        .zip(containers)
        .filter(|(_, one)| match choices.containers.as_slice() {
            [] => listens(one),
            named => named.contains(&name(one)) || (choices.all_containers && listens(one)),
        })
        .map(|(place, _)| place)
        .collect();
    if chosen.is_empty() && containers.len() == 1 {
        chosen.push(0);
    }
    if chosen.is_empty() {
        return Err(InjectError::NobodyListens { workload: workload() });
    }
    if !choices.all_containers && choices.containers.is_empty() {
        chosen.truncate(1);
    }
    let has_hook = |place: &&usize| {
        let container = containers.get(**place);
        container.and_then(|one| one.at(&["lifecycle", "preStop"])).is_some_and(|hook| *hook != Node::Null)
    };
    match chosen.iter().find(has_hook).and_then(|place| containers.get(*place)) {
        Some(container) if !choices.replace_hook => {
            Err(InjectError::Hook { workload: workload(), container: name(container) })
        }
        _ => Ok(chosen),
    }
}

/// A remark for each container that has ports and no hook.
pub(super) fn left_out(title: &str, containers: &[Node], chosen: &[usize]) -> Vec<String> {
    let without = containers.iter().enumerate().filter(|(place, container)| {
        !chosen.contains(place) && listens(container) && container.at(&["lifecycle", "preStop"]).is_none()
    });
    without
        .map(|(_, container)| {
            format!(
                "{title}: container {} has ports and gets no hook: kubelet stops it at once, whatever still comes; \
                 --all-containers gives it one",
                container.text_at(&["name"])
            )
        })
        .collect()
}

/// Gives a container the hook and its program.
pub(super) fn add(container: &mut Map, max_wait: u64) -> Option<()> {
    // A second longer than the agent's bound, so that of a drain that reaches it the agent's verdict is told.
    let bound = format!("{}s", max_wait + 1);
    let command = ["/run/lastsyn/lastsyn", "drain", "--max-wait", &bound].map(Node::text);
    let hook = Node::map([("exec", Node::map([("command", Node::List(command.into()))]))]);
    container.map_at("lifecycle")?.set("preStop", hook);
    let mount = Node::map([
        ("name", Node::text("lastsyn")),
        ("mountPath", Node::text("/run/lastsyn")),
        ("readOnly", Node::Bool(true)),
    ]);
    container.list_at("volumeMounts")?.push(mount);
    Some(())
}

fn listens(container: &Node) -> bool {
    container.get("ports").is_some_and(|ports| !ports.items().is_empty())
}
