//! What the cluster's slices and Services mean: whether somebody still has a reason to send new connections to the pod
//! (W1 to W8), and which of their changes void what the nodes have confirmed (the *relevant change*, C10).
//!
//! | rule | place |
//! | --- | --- |
//! | W1 whose endpoint it is, W2 absent conditions | `listing`, and the methods of [`Endpoint`](super::cluster::Endpoint) |
//! | W3 to W5, the relevant change | `port` |
//! | W4 the fallback, and the witness against it | `fallback` |
//! | W6 policies | `policies`, `unobserved` |
//! | W7 nothing is known yet | [`Routing::known`] |
//! | W8 other paths | `unobserved` |
//! | C10 a gap is one relevant change | `backends` |
//!
//! What a slice's write costs grows with the endpoints of that slice. A relevant change, and a list, cost as much as
//! all slices of that Service and family have endpoints. Nothing grows with the number of nodes.

mod backends;
mod changes;
mod fallback;
mod listing;
mod policies;
mod port;
#[cfg(test)]
mod tests;
mod unobserved;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

pub use changes::{Changes, Turn};
pub use listing::ServicePort;

use super::{
    clock::Monotonic,
    cluster::{NodeName, ResourceVersion, Service, ServiceName, Slice, SliceName},
    listener::Family,
    verdict::NotObserved,
};
use backends::Backends;
use changes::LastChanges;
use listing::{Listing, SliceId};
use policies::{Affected, Policies};

/// Whether the pod is routed to, as far as slices and Services say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// W3, W4: kube-proxy has a reason to route to the pod.
    Routed,
    /// W5: it has none, in any mixture of the versions since then, which is when the last relevant change of this
    /// Service port and family reached the agent.
    Withdrawn {
        /// That change.
        since: Monotonic,
    },
}

/// One Service port and family that has listed the pod since the first list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The Service.
    pub service: &'a ServiceName,
    /// Its port.
    pub port: &'a ServicePort,
    /// The family.
    pub family: Family,
    /// Whether it leads to the pod.
    pub state: State,
}

/// What is known of the pod's Services and their slices.
#[derive(Clone, Debug)]
pub struct Routing {
    pod: BTreeSet<IpAddr>,
    node: NodeName,
    /// Whether the first list of slices has completed.
    listed: bool,
    next_id: u64,
    /// Where each slice in force belongs.
    places: BTreeMap<SliceName, Place>,
    backends: BTreeMap<Place, Backends>,
    policies: Policies,
    /// Services whose policies or ports were seen to change before the first list of slices.
    changed_before_list: BTreeSet<ServiceName>,
    last: LastChanges,
}

type Place = (ServiceName, Family);

// === impl State ===

impl State {
    /// Whether it is [`State::Routed`].
    pub fn is_routed(self) -> bool {
        matches!(self, Self::Routed)
    }
}

// === impl Routing: what is told to it ===

impl Routing {
    /// Nothing is known yet of a pod with these addresses, on this node.
    pub fn new(pod_addresses: BTreeSet<IpAddr>, node: NodeName) -> Self {
        Self {
            pod: pod_addresses,
            node,
            listed: false,
            next_id: 0,
            places: BTreeMap::new(),
            backends: BTreeMap::new(),
            policies: Policies::default(),
            changed_before_list: BTreeSet::new(),
            last: LastChanges::default(),
        }
    }

    /// A list of all slices has completed: the first, which counts as changed then, or one after a gap in the watch.
    /// It is applied as one step (C10), and is a relevant change of every Service that has listed the pod, whatever it
    /// shows: of a slice that came and went in the gap no list tells.
    pub fn slices_listed(&mut self, slices: &[Slice], at: Monotonic) -> Changes {
        self.listed = true;
        let mut listed: BTreeMap<Place, BTreeMap<SliceName, Listing>> =
            self.backends.keys().map(|place| (place.clone(), BTreeMap::new())).collect();
        self.places.clear();
        for slice in slices {
            let place = (slice.service.clone(), slice.family);
            let name = slice.name.clone();
            let listing = self.reduce(slice, None);
            self.places.insert(name.clone(), place.clone());
            listed.entry(place).or_default().insert(name, listing);
        }
        let mut changes = Changes::default();
        for (place, slices) in listed {
            let local = self.policies.local(&place.0);
            let step = self.backends.entry(place.clone()).or_default().replace(slices, local, at);
            changes.add(&place.0, place.1, step);
        }
        self.backends.retain(|_, backends| !backends.is_forgotten());
        self.last.note(&changes, at);
        if !std::mem::take(&mut self.changed_before_list).is_disjoint(&changes.services) {
            self.last.note_policy(&changes, at);
        }
        changes
    }

    /// A slice was created or has a new version. Each version is to be told, in the order of the watch (C10). The
    /// version already known is none. Before the first list there is nothing that it could be compared with, and the
    /// list will show it.
    pub fn slice_written(&mut self, slice: &Slice, at: Monotonic) -> Changes {
        let name = slice.name.clone();
        let place = (slice.service.clone(), slice.family);
        let mut changes = Changes::default();
        if !self.listed {
            return changes;
        }
        if self.places.get(&name).is_some_and(|before| *before != place) {
            self.take(&name, &mut changes, at); // to its old Service it is gone
        }
        let known = self.backends.get(&place).and_then(|backends| backends.slice(&name));
        if known.is_none_or(|known| known.version != slice.version) {
            let id = known.map(|known| known.id);
            let listing = self.reduce(slice, id);
            let local = self.policies.local(&place.0);
            let step = self.backends.entry(place.clone()).or_default().write(&name, Some(listing), local, at);
            changes.add(&place.0, place.1, step);
            self.places.insert(name, place);
        }
        self.last.note(&changes, at);
        changes
    }

    /// A slice was deleted.
    pub fn slice_removed(&mut self, name: &SliceName, at: Monotonic) -> Changes {
        let mut changes = Changes::default();
        self.take(name, &mut changes, at);
        self.last.note(&changes, at);
        changes
    }

    /// A list of all Services has completed: the first, or one after a gap. A Service of which another version is shown
    /// may have had any policy in between, so that is a relevant change.
    pub fn services_listed(&mut self, services: Vec<Service>, at: Monotonic) -> Changes {
        let affected = self.policies.list(services);
        self.reconsider(&affected, at)
    }

    /// A Service was created or has a new version. Where its policies or ports differ, that is a relevant change.
    pub fn service_written(&mut self, service: Service, at: Monotonic) -> Changes {
        let affected = self.policies.write(service);
        self.reconsider(&affected, at)
    }

    /// A Service was deleted.
    pub fn service_removed(&mut self, name: ServiceName, at: Monotonic) -> Changes {
        let affected = self.policies.remove(name);
        self.reconsider(&affected, at)
    }

    /// W6: Services cannot be read, and why: words that go on after a colon. What was known of them still holds.
    pub fn services_unreadable(&mut self, why: String) {
        self.policies.unreadable(why);
    }

    fn take(&mut self, name: &SliceName, changes: &mut Changes, at: Monotonic) {
        let Some(place) = self.places.remove(name) else { return };
        let local = self.policies.local(&place.0);
        let Some(backends) = self.backends.get_mut(&place) else { return };
        let step = backends.write(name, None, local, at);
        if backends.is_forgotten() {
            self.backends.remove(&place);
        }
        changes.add(&place.0, place.1, step);
    }

    fn reconsider(&mut self, affected: &Affected, at: Monotonic) -> Changes {
        let mut changes = Changes::default();
        for service in &affected.services {
            let local = self.policies.local(service);
            for family in Family::ALL {
                if let Some(backends) = self.backends.get_mut(&(service.clone(), family)) {
                    changes.add(service, family, backends.reconsider(local, at));
                }
            }
        }
        self.last.note(&changes, at);
        if affected.is_news && !self.listed {
            self.changed_before_list.extend(affected.services.iter().cloned());
        } else if affected.is_news {
            self.last.note_policy(&changes, at);
        }
        changes
    }

    fn reduce(&mut self, slice: &Slice, id: Option<SliceId>) -> Listing {
        let id = id.unwrap_or_else(|| {
            self.next_id = self.next_id.saturating_add(1);
            SliceId(self.next_id)
        });
        Listing::new(id, slice, &self.pod, &self.node)
    }
}

// === impl Routing: what it tells ===

impl Routing {
    /// Every Service port and family under which the pod has been listed since the first list.
    pub fn routes(&self) -> impl Iterator<Item = Route<'_>> {
        self.backends.iter().flat_map(|((service, family), backends)| {
            backends.states().map(move |(port, state)| Route { service, port, family: *family, state })
        })
    }

    /// Whether a list of slices has completed.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Whether any slice has listed the pod since the first list.
    pub fn has_listed_the_pod(&self) -> bool {
        self.backends.values().any(Backends::has_listed_the_pod)
    }

    /// W7: the first list has completed, and some slice has listed the pod since; and the Services were listed, or
    /// cannot be (without them a fallback by `Local` would go unnoticed and unnamed). Until then nothing is known, which
    /// is not the same as withdrawn.
    pub fn known(&self) -> bool {
        self.listed && self.policies.are_settled() && self.has_listed_the_pod()
    }

    /// W7, by family: the pod has an address in them, a Service that has listed the pod has slices of them, and none has
    /// listed the pod there. It may have been taken out before the first list, and nodes may not have heard of it.
    pub fn unlisted_families(&self) -> BTreeSet<Family> {
        let of = |family: Family| self.backends.iter().filter(move |((_, of), _)| *of == family);
        let lists = |service: &ServiceName| {
            self.backends.iter().any(|((of, _), backends)| of == service && backends.has_listed_the_pod())
        };
        let unlisted = |family: &Family| {
            of(*family).any(|((service, _), _)| lists(service))
                && !of(*family).any(|(_, backends)| backends.has_listed_the_pod())
        };
        self.pod
            .iter()
            .map(|address| if address.is_ipv4() { Family::V4 } else { Family::V6 })
            .filter(unlisted)
            .collect()
    }

    /// Whether a slice lists the pod as terminating: its `deletionTimestamp` is set (the EndpointSlice controller's
    /// `podToEndpoint`).
    pub fn lists_the_pod_terminating(&self) -> bool {
        self.backends.values().any(Backends::list_the_pod_terminating)
    }

    /// The families in which kube-proxy has had a reason to route to the pod: those that nodes are to confirm.
    pub fn families(&self) -> BTreeSet<Family> {
        self.routable().map(|((_, family), _)| *family).collect()
    }

    /// When the last relevant change of any Service of this family reached the agent; `None` if there was none.
    pub fn last_relevant_change(&self, family: Family) -> Option<Monotonic> {
        self.last.relevant(family)
    }

    /// Counts the relevant changes of this family: what was confirmed in an earlier generation is void (C10).
    pub fn generation(&self, family: Family) -> u64 {
        self.last.generation(family)
    }

    /// When a policy or port of a Service that has listed the pod was last seen to change. No marker of a fence is
    /// ordered after such a change (C10). What the first list shows is not seen to change: `None`.
    pub fn last_policy_change(&self, family: Family) -> Option<Monotonic> {
        self.last.policy(family)
    }

    /// W6 and W8: what could lead to the pod and is not seen here. The rest of W8 is the pod's and the namespace's.
    pub fn not_observed(&self) -> BTreeSet<NotObserved> {
        let listing = self.backends.iter().filter(|(_, backends)| backends.has_listed_the_pod());
        listing
            .flat_map(|((service, family), backends)| unobserved::of(service, *family, backends, &self.policies))
            .collect()
    }

    /// E6: the Services that have listed the pod and have a `healthCheckNodePort`, with it.
    pub fn health_check_node_ports(&self) -> BTreeMap<&ServiceName, u16> {
        let services = self.routable().map(|((service, _), _)| service);
        services.filter_map(|service| Some((service, self.policies.get(service)?.health_check_node_port?))).collect()
    }

    /// The slices in force and their versions: what a consistent read is compared with (C9).
    pub fn slice_versions(&self) -> impl Iterator<Item = (&SliceName, &ResourceVersion)> {
        self.places.iter().filter_map(|(name, place)| Some((name, &self.backends.get(place)?.slice(name)?.version)))
    }

    /// The Services known and their versions: what a consistent read is compared with (C9).
    pub fn service_versions(&self) -> impl Iterator<Item = (&ServiceName, &ResourceVersion)> {
        self.policies.versions()
    }

    fn routable(&self) -> impl Iterator<Item = (&Place, &Backends)> {
        self.backends.iter().filter(|(_, backends)| backends.routable())
    }
}
