//! The list of nodes, read consistently.

use std::{collections::BTreeSet, time::Duration};

use kube::Client;

use crate::{
    cluster::{Access, Refusal, convert::NodeTarget, nodes_by_metadata, nodes_selected, targets},
    core::{
        clock::Monotonic,
        cluster::{Node, NodeName},
    },
    drive::clock,
};

/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A list of the nodes.
pub(super) struct Listed {
    /// Its reading began then or later.
    pub(super) as_of: Monotonic,
    /// All of them.
    pub(super) nodes: Vec<Node>,
    /// Where to ask them, if that was read too.
    pub(super) targets: Option<Vec<NodeTarget>>,
}

/// Reads it. Where a node is asked is read only if there are others than `known`: the objects in full have some 20 KiB each.
///
/// # Errors
/// See [`Refusal`].
pub(super) async fn list(
    client: &Client,
    access: &Access,
    ignore: &str,
    known: &BTreeSet<NodeName>,
) -> Result<Listed, Refusal> {
    let ignored = match ignore {
        "" => BTreeSet::new(),
        selector => nodes_selected(client, access, selector, PATIENCE).await?,
    };
    let as_of = clock::now();
    let nodes = nodes_by_metadata(client, access, &ignored, PATIENCE).await?;
    let targets = if nodes.iter().all(|node| known.contains(&node.name)) {
        None
    } else {
        Some(targets(client, access, &ignored, PATIENCE).await?)
    };
    Ok(Listed { as_of, nodes, targets })
}
