//! The agent's `ServiceAccount` and its rights, as the chart has them (docs/cluster.md).

use super::node::{Map, Node};

const RIGHTS: &str = include_str!("rights.yaml");

/// Whose rights they are.
pub(super) struct Account<'a> {
    pub(super) name: &'a str,
    /// As the workload's manifest has it: where it has none, `kubectl apply --namespace` decides.
    pub(super) written: Option<&'a str>,
    /// Where its pods are.
    pub(super) namespace: &'a str,
}

/// The name of the account that a workload gets, as the chart has it.
pub(super) fn account_name(workload: &str) -> String {
    const LONGEST: usize = 55;
    if workload.contains("lastsyn") {
        return workload.to_owned();
    }
    let short: String = workload.chars().take(LONGEST).collect();
    format!("{}-lastsyn", short.trim_end_matches('-'))
}

/// The manifests that give the account and its rights; nothing where they cannot be made.
pub(super) fn manifests(account: &Account<'_>) -> Option<Vec<Node>> {
    let cluster_wide = format!("{}-{}-nodes", account.namespace, account.name);
    let mut manifests: Vec<Node> = serde_saphyr::from_multiple(RIGHTS).ok()?;
    for manifest in &mut manifests {
        let is_wide = manifest.text_at(&["kind"]).starts_with("Cluster");
        let name = if is_wide { cluster_wide.as_str() } else { account.name };
        let metadata = manifest.at_mut(&["metadata"])?.as_map_mut()?;
        metadata.set("name", Node::text(name));
        if let (false, Some(namespace)) = (is_wide, account.written) {
            metadata.set("namespace", Node::text(namespace));
        }
        // Labels stay behind the names.
        let labels = Node::map([
            ("app.kubernetes.io/name", Node::text("lastsyn")),
            ("app.kubernetes.io/instance", Node::text(account.name)),
        ]);
        metadata.set("labels", labels);
        let fields = manifest.as_map_mut()?;
        if let Some(role) = fields.get_mut("roleRef").and_then(Node::as_map_mut) {
            role.set("name", Node::text(name));
            bind(fields, account)?;
        }
    }
    Some(manifests)
}

fn bind(binding: &mut Map, account: &Account<'_>) -> Option<()> {
    binding.list_at("subjects")?.push(Node::map([
        ("kind", Node::text("ServiceAccount")),
        ("name", Node::text(account.name)),
        ("namespace", Node::text(account.namespace)),
    ]));
    Some(())
}
