//! What is still of use to know of the cluster.

use std::collections::BTreeMap;

use super::{
    super::{
        clock::Monotonic,
        cluster::{NodeName, ServiceName, Wanted},
        confirm::Tally,
        listener::Family,
    },
    Withdrawal,
};

impl Withdrawal {
    /// Whether a node's next answer is of use. One of a family in which nothing lists the pod is of none; before anything
    /// does, of both: a connection's first answer is its base, and may come early.
    pub(crate) fn health_wanted(&self, node: &NodeName, started: Monotonic, now: Monotonic) -> Wanted {
        let families = &self.summary.families;
        let asked = |family: &Family| families.is_empty() || families.contains(family);
        let wanted = Family::ALL.into_iter().filter(asked).any(|family| {
            self.confirmations.state(node, family).is_none() || self.confirmations.wants_health(node, family)
        });
        if !wanted {
            return Wanted::No;
        }
        let (_, last) = self.last_change();
        Wanted::Yes { since: last.unwrap_or(started), due: self.confirmations.node_due(node, now) }
    }

    /// When the last relevant change of any family came, and which it was: after another, other answers are of use.
    pub(crate) fn last_change(&self) -> (u64, Option<Monotonic>) {
        let generation = |family| self.routing.generation(family);
        let last = Family::ALL.into_iter().filter_map(|family| self.routing.last_relevant_change(family)).max();
        (Family::ALL.into_iter().map(generation).sum(), last)
    }

    /// E6: the Services whose `healthCheckNodePort` is to be asked on this node.
    pub(crate) fn local_ports(&self) -> BTreeMap<ServiceName, u16> {
        self.routing.health_check_node_ports().into_iter().map(|(service, port)| (service.clone(), port)).collect()
    }

    /// How many nodes are in which state, in the families that list the pod together.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for family in &self.summary.families {
            let of = self.confirmations.tally(*family);
            sum.confirmed += of.confirmed;
            sum.assumed += of.assumed;
            sum.waited += of.waited;
            sum.pending += of.pending;
            sum.unobservable += of.unobservable;
        }
        sum
    }
}
