//! W3 to W5 and the relevant change, for one Service port and family that has listed the pod.

use std::collections::BTreeMap;

use super::{
    super::{clock::Monotonic, cluster::SliceName},
    State,
    fallback::{Scope, Witnesses},
    listing::{Listing, PodEntry, ServicePort, SliceId},
};

/// What every mixture of the slices' versions since the last relevant change has in common.
///
/// A node may hold each slice at any version that was in force at the last relevant change or that came since: its
/// watch may be late, and a relist comes in any order. A write is relevant unless none of these mixtures can route to
/// the pod, so the write of a version that adds no such mixture leaves what was confirmed standing.
#[derive(Clone, Debug)]
pub(super) struct PortRouting {
    /// The last relevant change.
    since: Monotonic,
    /// What the slices that list the pod say of it now.
    in_force: BTreeMap<SliceId, PodEntry>,
    /// Some version since then lists the pod ready.
    ready_since: bool,
    /// Some version since then lists the pod serving.
    serving_since: bool,
    witnesses: Witnesses,
}

// === impl PortRouting ===

impl PortRouting {
    /// A relevant change at `at`, after which `in_force` is what the slices say. From here on older versions count no
    /// more: evidence that is gathered after it has every node at these versions or later ones.
    pub(super) fn start(
        port: &ServicePort,
        in_force: &BTreeMap<SliceName, Listing>,
        local: bool,
        at: Monotonic,
    ) -> Self {
        let pod: BTreeMap<_, _> =
            in_force.values().filter_map(|listing| Some((listing.id, listing.pod_at(port)?))).collect();
        let ready_since = pod.values().any(|entry| entry.ready);
        let serving_since = pod.values().any(|entry| entry.serving);
        let scope = if local { Scope::Node } else { Scope::Cluster };
        let witnesses = if ready_since {
            Witnesses::none(scope) // the next write is relevant whoever else is ready: spare the search
        } else {
            Witnesses::among(scope, port, in_force)
        };
        Self { since: at, in_force: pod, ready_since, serving_since, witnesses }
    }

    /// Takes a slice's next version in, and says whether that is a relevant change: then [`PortRouting::start`] has to
    /// follow. `None` is a slice that is not there.
    pub(super) fn judge(&mut self, port: &ServicePort, before: Option<&Listing>, after: Option<&Listing>) -> bool {
        if let Some(before) = before {
            self.in_force.remove(&before.id);
        }
        if let Some((id, entry)) = after.and_then(|after| Some((after.id, after.pod_at(port)?))) {
            self.in_force.insert(id, entry);
            self.ready_since |= entry.ready;
            self.serving_since |= entry.serving;
        }
        self.witnesses.judge(port, before, after);
        self.ready_since || (self.serving_since && !self.witnesses.stand())
    }

    /// W3 to W5, of the versions in force.
    pub(super) fn state(&self) -> State {
        let ready = self.in_force.values().any(|entry| entry.ready);
        let fallback = self.in_force.values().any(|entry| entry.fallback);
        if ready || (fallback && !self.witnesses.stand()) {
            State::Routed
        } else {
            State::Withdrawn { since: self.since }
        }
    }
}
