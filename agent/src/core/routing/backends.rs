//! All slices of one Service and family, and the Service ports under which they have listed the pod.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        clock::Monotonic,
        cluster::{ServiceProxy, SliceName},
    },
    State,
    listing::{Listing, ServicePort},
    port::PortRouting,
};

/// The slices in force, and what follows from them.
#[derive(Clone, Debug, Default)]
pub(super) struct Backends {
    slices: BTreeMap<SliceName, Listing>,
    /// Every port under which the pod has been listed since the first list.
    ports: BTreeMap<ServicePort, PortRouting>,
    /// For whom the pod has been listed since the first list.
    listed_for: BTreeSet<ServiceProxy>,
}

/// What a step did.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// It was a relevant change.
    pub(super) relevant: bool,
    /// The ports that are routed or withdrawn now and were not before.
    pub(super) turned: Vec<(ServicePort, State)>,
}

// === impl Backends ===

impl Backends {
    /// One slice's next version; `None` where it is gone.
    pub(super) fn write(&mut self, name: &SliceName, after: Option<Listing>, local: bool, at: Monotonic) -> Step {
        let before = self.slices.remove(name);
        let touched: BTreeSet<ServicePort> = before.iter().chain(&after).flat_map(Listing::service_ports).collect();
        let mut relevant = BTreeMap::new();
        for port in touched {
            let was = self.ports.get(&port).map(PortRouting::state);
            let changes = match self.ports.get_mut(&port) {
                Some(routing) => routing.judge(&port, before.as_ref(), after.as_ref()),
                None => after.as_ref().is_some_and(|after| after.pod_at(&port).is_some()),
            };
            if changes {
                relevant.insert(port, was);
            }
        }
        self.see(after.as_ref());
        self.slices.extend(after.map(|after| (name.clone(), after)));
        self.restart(relevant, local, at)
    }

    /// What a list shows, after a gap: one relevant change, where the pod has been listed. Versions that the gap hid are
    /// older than the change. That is also so where nothing differs: a slice may have come and gone in between.
    pub(super) fn replace(&mut self, slices: BTreeMap<SliceName, Listing>, local: bool, at: Monotonic) -> Step {
        if !self.has_listed_the_pod() && versions(&self.slices).eq(versions(&slices)) {
            return Step::default();
        }
        for listing in slices.values() {
            self.see(Some(listing));
        }
        let listed = slices.values().filter(|listing| listing.pod.is_some()).flat_map(Listing::service_ports);
        let mut ports: BTreeMap<_, _> = listed.map(|port| (port, None)).collect();
        ports.extend(self.ports_and_states());
        self.slices = slices;
        self.restart(ports, local, at)
    }

    /// A relevant change that no slice shows: the Service's policies or ports.
    pub(super) fn reconsider(&mut self, local: bool, at: Monotonic) -> Step {
        self.restart(self.ports_and_states(), local, at)
    }

    pub(super) fn slice(&self, name: &SliceName) -> Option<&Listing> {
        self.slices.get(name)
    }

    pub(super) fn states(&self) -> impl Iterator<Item = (&ServicePort, State)> {
        self.ports.iter().map(|(port, routing)| (port, routing.state()))
    }

    /// Whether kube-proxy has had a reason to route to the pod since the first list.
    pub(super) fn routable(&self) -> bool {
        !self.ports.is_empty()
    }

    /// Whether the pod has been listed at all since the first list.
    pub(super) fn has_listed_the_pod(&self) -> bool {
        !self.listed_for.is_empty()
    }

    /// For whom the pod has been listed since the first list: kube-proxy, or others that it does not speak for.
    pub(super) fn listed_for(&self) -> impl Iterator<Item = ServiceProxy> {
        self.listed_for.iter().copied()
    }

    /// Whether a slice lists the pod as terminating.
    pub(super) fn list_the_pod_terminating(&self) -> bool {
        self.slices.values().any(|listing| listing.pod_terminating)
    }

    /// Nothing is left of it, and nothing of it was ever the pod's.
    pub(super) fn is_forgotten(&self) -> bool {
        self.slices.is_empty() && !self.has_listed_the_pod()
    }

    fn see(&mut self, listing: Option<&Listing>) {
        self.listed_for.extend(listing.filter(|listing| listing.pod.is_some()).map(|listing| listing.proxy));
    }

    fn ports_and_states(&self) -> BTreeMap<ServicePort, Option<State>> {
        self.ports.iter().map(|(port, routing)| (port.clone(), Some(routing.state()))).collect()
    }

    /// A relevant change of these ports, each with its state before, where it had one.
    fn restart(&mut self, ports: BTreeMap<ServicePort, Option<State>>, local: bool, at: Monotonic) -> Step {
        let mut step = Step { relevant: !ports.is_empty(), turned: Vec::new() };
        for (port, was) in ports {
            let routing = PortRouting::start(&port, &self.slices, local, at);
            let state = routing.state();
            self.ports.insert(port.clone(), routing);
            if was.is_none_or(|was| was.is_routed() != state.is_routed()) {
                step.turned.push((port, state));
            }
        }
        step
    }
}

fn versions(slices: &BTreeMap<SliceName, Listing>) -> impl Iterator<Item = (&SliceName, &str)> {
    slices.iter().map(|(name, listing)| (name, listing.version.0.as_str()))
}
