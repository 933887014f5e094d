//! Which nodes there are.

use std::collections::BTreeSet;

use super::{Nodes, Withdrawal};
use crate::core::cluster::{Node, NodeName};

impl Withdrawal {
    /// A list of the nodes, that says nothing of those that are `told_since`: they stay as they are.
    pub(super) fn nodes_listed(&mut self, nodes: &[Node], told_since: &BTreeSet<NodeName>) {
        let nodes = || nodes.iter().filter(|node| !told_since.contains(&node.name));
        let mut listed: BTreeSet<NodeName> = nodes().map(|node| node.name.clone()).collect();
        if let Nodes::Listed(before) | Nodes::ByFence(before, _) = &self.nodes {
            listed.extend(before.intersection(told_since).cloned());
            for gone in before.difference(&listed) {
                self.confirmations.node_removed(gone);
            }
        }
        for node in nodes() {
            self.confirmations.node_added(&node.name, node.system);
        }
        self.nodes = Nodes::Listed(listed);
    }

    pub(super) fn node_added(&mut self, node: &Node) {
        self.read.nodes_told([&node.name]);
        self.confirmations.node_added(&node.name, node.system);
        if let Nodes::Listed(known) = &mut self.nodes {
            known.insert(node.name.clone());
        }
    }

    pub(super) fn node_removed(&mut self, name: &NodeName) {
        self.read.nodes_told([name]);
        self.confirmations.node_removed(name);
        if let Nodes::Listed(known) = &mut self.nodes {
            known.remove(name);
        }
    }

    /// Where our own list cannot be had, the fence's stands in its place.
    pub(super) fn take_the_fence_s_nodes(&mut self) {
        if !matches!(self.nodes, Nodes::Unreadable(_) | Nodes::ByFence(..)) {
            return;
        }
        let Some((nodes, as_of)) = &self.fence.nodes else { return };
        let listed: BTreeSet<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
        if let Nodes::ByFence(before, _) = &self.nodes {
            for gone in before.difference(&listed) {
                self.confirmations.node_removed(gone);
            }
        }
        for node in nodes {
            self.confirmations.node_added(&node.name, node.system);
        }
        self.nodes = Nodes::ByFence(listed, *as_of);
    }
}
