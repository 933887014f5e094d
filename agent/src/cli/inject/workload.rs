//! The workload among the documents, and what rules it out.

use super::{
    choices::{Choices, workload_kind},
    documents::Document,
    error::InjectError,
    node::{Map, Node},
};

/// Where a workload is: its document, and its place in the document's `items` where that is a list.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) document: usize,
    item: Option<usize>,
}

/// What a manifest is called: `deployment/web`.
pub(super) fn title(manifest: &Node) -> String {
    format!("{}/{}", manifest.text_at(&["kind"]).to_lowercase(), manifest.text_at(&["metadata", "name"]))
}

/// Every manifest, also those of lists, with its place.
pub(super) fn manifests<'a>(documents: &'a [Document<'_>]) -> impl Iterator<Item = (Place, &'a Node)> {
    documents.iter().enumerate().flat_map(|(document, found)| {
        let items = found.content.get("items").filter(|_| found.content.text_at(&["kind"]).ends_with("List"));
        let one = items.is_none().then_some((Place { document, item: None }, &found.content));
        let listed = items.map(Node::items).unwrap_or_default().iter().enumerate();
        one.into_iter().chain(listed.map(move |(item, node)| (Place { document, item: Some(item) }, node)))
    })
}

/// The workload that was asked for.
///
/// # Errors
/// When it is not there, or it is not clear which is meant.
pub(super) fn find(documents: &[Document<'_>], choices: &Choices) -> Result<Place, InjectError> {
    let is_workload = |node: &Node| {
        node.text_at(&["apiVersion"]).starts_with("apps/") && workload_kind(node.text_at(&["kind"])).is_some()
    };
    let there: Vec<(Place, &Node)> = manifests(documents).filter(|(_, node)| is_workload(node)).collect();
    let names = |of: &[(Place, &Node)]| of.iter().map(|(_, node)| title(node)).collect::<Vec<_>>().join(", ");
    let mut meant = there.clone();
    if let Some((kind, name)) = &choices.workload {
        meant.retain(|(_, node)| {
            workload_kind(node.text_at(&["kind"])) == Some(*kind) && node.text_at(&["metadata", "name"]) == name
        });
        // Of one name in several namespaces.
        if let (2.., Some(wanted)) = (meant.len(), &choices.namespace) {
            meant.retain(|(_, node)| node.text_at(&["metadata", "namespace"]) == wanted);
        }
    }
    match (meant.as_slice(), &choices.workload) {
        ([(place, _)], _) => Ok(*place),
        (_, _) if there.is_empty() => Err(InjectError::NoWorkload),
        ([], Some((kind, name))) => {
            Err(InjectError::NotThere { wanted: format!("{}/{name}", kind.to_lowercase()), there: names(&there) })
        }
        _ => Err(InjectError::Several(names(&meant))),
    }
}

/// The manifest at a place.
pub(super) fn at<'a>(documents: &'a mut [Document<'_>], place: Place) -> Option<&'a mut Node> {
    let content = &mut documents.get_mut(place.document)?.content;
    match place.item {
        None => Some(content),
        Some(item) => content.at_mut(&["items"])?.items_mut().get_mut(item),
    }
}

/// Containers of a pod, those that run first included.
pub(super) fn containers(pod: &Node) -> impl Iterator<Item = &Node> {
    ["initContainers", "containers"].into_iter().filter_map(|list| pod.get(list)).flat_map(Node::items)
}

/// Whether its pods have an agent already.
pub(super) fn is_injected(pod: &Node) -> bool {
    containers(pod).any(|container| container.text_at(&["name"]) == "lastsyn")
}

/// What keeps an agent from working in these pods, or from being put into them.
///
/// # Errors
/// The reason.
pub(super) fn check(title: &str, pod: &Node, choices: &Choices) -> Result<(), InjectError> {
    let workload = || title.to_owned();
    if is_for_windows(pod) {
        return Err(InjectError::Windows { workload: workload() });
    }
    if pod.get("hostUsers") == Some(&Node::Bool(false)) && ["bpf", "compat"].contains(&choices.security) {
        return Err(InjectError::UserNamespace { workload: workload(), security: choices.security });
    }
    let named =
        |list: &str| pod.get(list).map(Node::items).unwrap_or_default().iter().map(|one| one.text_at(&["name"]));
    let taken = if let Some(name) = named("volumes").find(|name| ["lastsyn", "lastsyn-token"].contains(name)) {
        Some(format!("a volume {name}"))
    } else if containers(pod).any(|one| one.text_at(&["name"]) == "lastsyn-install") {
        Some("a container lastsyn-install".to_owned())
    } else {
        let ports = containers(pod).filter_map(|one| one.get("ports")).flat_map(Node::items);
        let mut numbers = ports.filter_map(|port| port.get("containerPort").and_then(Node::as_number));
        numbers.any(|number| number == super::PORT).then(|| format!("port {}", super::PORT))
    };
    match taken {
        Some(what) => Err(InjectError::Taken { workload: workload(), what }),
        None => Ok(()),
    }
}

fn is_for_windows(pod: &Node) -> bool {
    const LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
    let selected = pod.get("nodeSelector").and_then(Node::as_map);
    let is_windows =
        |labels: &Map| LABELS.iter().any(|label| labels.get(label).and_then(Node::as_text) == Some("windows"));
    let path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];
    let terms = pod.at(&path).map(Node::items).unwrap_or_default();
    let wanted = terms.iter().filter_map(|term| term.get("matchExpressions")).flat_map(Node::items);
    let mut wanted = wanted.filter(|one| LABELS.contains(&one.text_at(&["key"])) && one.text_at(&["operator"]) == "In");
    pod.text_at(&["os", "name"]) == "windows"
        || selected.is_some_and(is_windows)
        || wanted.any(|one| one.get("values").is_some_and(|values| values.items().contains(&Node::text("windows"))))
}
