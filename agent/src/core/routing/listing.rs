//! One version of a slice, reduced to what routing asks of it. The slice's own form is some ten times larger.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::super::{
    cluster::{NodeName, PortName, ResourceVersion, ServiceProxy, Slice, SlicePort, Transport},
    listener::Family,
};

/// A slice of one Service and family, from its creation to its removal. Never used twice: a slice that is made again
/// under its old name has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SliceId(pub(super) u64);

/// A port of a Service. kube-proxy decides for each on its own: its `ServicePortName` has both parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePort {
    /// The name that Service and slices give it.
    pub name: PortName,
    /// Its protocol.
    pub transport: Transport,
}

/// One version of a slice.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    pub(super) id: SliceId,
    pub(super) version: ResourceVersion,
    pub(super) proxy: ServiceProxy,
    /// W1: what it says of the pod, where it lists it.
    pub(super) pod: Option<PodEntry>,
    /// Some entry of the pod is terminating, whether or not it serves.
    pub(super) pod_terminating: bool,
    /// The other endpoints, by their first address. Empty where kube-proxy does not look at the slice.
    others: BTreeMap<IpAddr, Peer>,
    /// Empty where kube-proxy does not look at the slice.
    ports: Vec<SlicePort>,
}

/// What one version of one slice says of the pod; of several entries, the worst of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodEntry {
    /// Some entry is ready.
    pub(super) ready: bool,
    /// Some entry is serving.
    pub(super) serving: bool,
    /// Some entry is serving and terminating: kube-proxy falls back to it where no endpoint is ready.
    pub(super) fallback: bool,
}

/// Another endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Every entry of its address is ready.
    pub(super) ready: bool,
    /// Every entry of its address is on the pod's node.
    pub(super) on_node: bool,
}

// === impl Listing ===

impl Listing {
    pub(super) fn new(id: SliceId, slice: &Slice, pod: &BTreeSet<IpAddr>, node: &NodeName) -> Self {
        let kube_proxy = slice.proxy == ServiceProxy::KubeProxy;
        let mut listed: Option<PodEntry> = None;
        let mut pod_terminating = false;
        let mut others = BTreeMap::new();
        for endpoint in &slice.endpoints {
            if endpoint.is_the_pods(pod) {
                let entry = listed.get_or_insert_default();
                entry.ready |= endpoint.is_ready();
                entry.serving |= endpoint.is_serving();
                pod_terminating |= endpoint.is_terminating();
                entry.fallback |= endpoint.is_serving() && endpoint.is_terminating();
            } else if kube_proxy && family_of(endpoint.address) == slice.family {
                let on_node = endpoint.node.as_ref() == Some(node);
                let peer = others.entry(endpoint.address).or_insert(Peer { ready: true, on_node: true });
                peer.ready &= endpoint.is_ready();
                peer.on_node &= on_node;
            }
        }
        let ports = if kube_proxy { slice.ports.clone() } else { Vec::new() };
        Self { id, version: slice.version.clone(), proxy: slice.proxy, pod: listed, pod_terminating, others, ports }
    }

    /// The Service ports that its endpoints serve.
    pub(super) fn service_ports(&self) -> impl Iterator<Item = ServicePort> {
        self.ports.iter().map(|port| ServicePort { name: port.name.clone(), transport: port.transport })
    }

    /// What it says of the pod as an endpoint of `port`.
    pub(super) fn pod_at(&self, port: &ServicePort) -> Option<PodEntry> {
        self.pod.filter(|_| self.numbers(port).next().is_some())
    }

    /// The other endpoints of `port`, each with the number that the port has here.
    pub(super) fn peers<'a>(&'a self, port: &'a ServicePort) -> impl Iterator<Item = (IpAddr, u16, Peer)> {
        self.numbers(port).flat_map(|number| self.others.iter().map(move |(&address, &peer)| (address, number, peer)))
    }

    /// What it says of one other endpoint of `port`.
    pub(super) fn peer(&self, port: &ServicePort, address: IpAddr, number: u16) -> Option<Peer> {
        let listed = self.others.get(&address).copied()?;
        self.numbers(port).any(|here| here == number).then_some(listed)
    }

    fn numbers(&self, port: &ServicePort) -> impl Iterator<Item = u16> {
        self.ports
            .iter()
            .filter(|here| here.name == port.name && here.transport == port.transport)
            .map(|here| here.number)
    }
}

/// kube-proxy drops an entry whose first address is of another family than its slice.
fn family_of(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}
