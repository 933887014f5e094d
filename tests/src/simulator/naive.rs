//! The rule that somebody would write first: a node whose stamp is newer than the change has synced it. It sees the same
//! as the core, and claims too much.

use std::collections::{BTreeMap, BTreeSet};

use lastsyn::core::{
    clock::Monotonic,
    cluster::{ClusterEvent, HealthOutcome, NodeName, NodeTime, Slice, SliceName},
    listener::Family,
};

use super::translate;

/// What such a rule keeps.
#[derive(Debug)]
pub(super) struct Naive {
    families: &'static [Family],
    slices: BTreeMap<SliceName, Slice>,
    listed: bool,
    /// When the last change reached it.
    changed: Monotonic,
    nodes: BTreeSet<NodeName>,
    /// Each node's last stamps.
    stamps: BTreeMap<NodeName, [Option<NodeTime>; 2]>,
}

impl Naive {
    pub(super) fn new(families: &'static [Family]) -> Self {
        Self {
            families,
            slices: BTreeMap::new(),
            listed: false,
            changed: Monotonic::default(),
            nodes: BTreeSet::new(),
            stamps: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, event: &ClusterEvent, now: Monotonic) {
        match event {
            ClusterEvent::SlicesListed(slices) => {
                self.slices = slices.iter().map(|slice| (slice.name.clone(), slice.clone())).collect();
                (self.listed, self.changed) = (true, now);
            }
            ClusterEvent::SliceWritten(slice) => {
                self.slices.insert(slice.name.clone(), slice.clone());
                self.changed = now;
            }
            ClusterEvent::SliceRemoved(name) => {
                self.slices.remove(name);
                self.changed = now;
            }
            ClusterEvent::NodesListed(nodes) => self.nodes = nodes.iter().map(|node| node.name.clone()).collect(),
            ClusterEvent::NodeAdded(node) => drop(self.nodes.insert(node.name.clone())),
            ClusterEvent::NodeRemoved(name) => drop(self.nodes.remove(name)),
            ClusterEvent::Health(report) => {
                if let HealthOutcome::Status(status) = report.outcome {
                    let stamps = [status.v4, status.v6].map(|family| family.map(|family| family.last_updated));
                    self.stamps.insert(report.node.clone(), stamps);
                }
            }
            _ => {}
        }
    }

    /// Whether it would say that every node has the withdrawal.
    pub(super) fn claims(&self) -> bool {
        self.listed && !self.nodes.is_empty() && self.is_withdrawn() && self.nodes.iter().all(|node| self.has(node))
    }

    fn has(&self, node: &NodeName) -> bool {
        let stamps = self.stamps.get(node).copied().unwrap_or_default();
        let newer = |stamp: Option<NodeTime>| stamp.is_some_and(|stamp| stamp.0 > i128::from(self.changed.as_nanos()));
        self.families.iter().all(|family| newer(stamps[super::kube_proxy::place(*family)]))
    }

    /// By the plain reading of the newest slices: not ready, and not the fallback either.
    fn is_withdrawn(&self) -> bool {
        let pod = translate::pod_addresses(self.families);
        let entries = || self.slices.values().flat_map(|slice| &slice.endpoints);
        let mut of_pod = entries().filter(|endpoint| endpoint.is_the_pods(&pod));
        let other_ready = entries().any(|endpoint| !endpoint.is_the_pods(&pod) && endpoint.is_ready());
        of_pod.all(|endpoint| !endpoint.is_ready() && (other_ready || !endpoint.is_serving()))
    }
}
