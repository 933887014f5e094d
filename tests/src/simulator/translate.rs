//! The world in the core's words.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use lastsyn::core::{
    cluster::{
        Endpoint, Node, NodeName, PortName, ResourceVersion, Service, ServiceName, ServiceProxy, Slice, SliceName,
        SlicePort, Snapshot, Transport,
    },
    confirm::OperatingSystem,
    listener::Family,
};

use super::{
    api::{Api, Body, Content, Entry, MOST_SLICES, ObjectId, Policy},
    node::NodeId,
    routes::POD,
};

static NODES: LazyLock<Vec<NodeName>> =
    LazyLock::new(|| ('a'..='z').map(|letter| NodeName(letter.to_string())).collect());
static SLICES: LazyLock<Vec<SliceName>> =
    LazyLock::new(|| (0..MOST_SLICES).map(|number| SliceName(format!("web-{number}"))).collect());
static PORTS: [&str; 2] = ["http", "metrics"];

pub(super) fn node_name(node: NodeId) -> NodeName {
    NODES[node.0].clone()
}

pub(super) fn service_name(service: usize) -> ServiceName {
    ServiceName(["web", "api"][service].to_owned())
}

pub(super) fn slice_name(object: ObjectId) -> SliceName {
    SLICES[object.0].clone()
}

/// A pod's address in one family.
pub(super) fn address(pod: u16, family: Family) -> IpAddr {
    let [high, low] = pod.to_be_bytes();
    match family {
        Family::V4 => Ipv4Addr::new(10, 0, high, low).into(),
        Family::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, pod).into(),
    }
}

/// The addresses of the pod that drains.
pub(super) fn pod_addresses(families: &[Family]) -> BTreeSet<IpAddr> {
    families.iter().map(|family| address(POD, *family)).collect()
}

/// One version of a slice.
pub(super) fn slice(object: ObjectId, version: u32, body: &Body) -> Slice {
    Slice {
        name: slice_name(object),
        version: ResourceVersion(version.to_string()),
        service: service_name(body.service),
        family: body.family,
        proxy: ServiceProxy::KubeProxy,
        ports: body
            .ports
            .iter()
            .map(|(name, number)| SlicePort {
                name: PortName(PORTS[usize::from(*name)].to_owned()),
                transport: Transport::Tcp,
                number: *number,
            })
            .collect(),
        endpoints: body.endpoints.iter().map(|entry| endpoint(entry, body.family)).collect(),
    }
}

fn endpoint(entry: &Entry, family: Family) -> Endpoint {
    let address = address(entry.pod, family);
    Endpoint {
        address,
        addresses: BTreeSet::from([address]),
        ready: entry.ready,
        serving: entry.serving,
        terminating: entry.terminating,
        node: Some(node_name(entry.node)),
    }
}

/// A Service as the `version`th write of Services made it.
pub(super) fn service(number: usize, version: u32, policy: Policy) -> Service {
    Service {
        name: service_name(number),
        version: ResourceVersion(version.to_string()),
        external: policy.external,
        internal: policy.internal,
        proxy: ServiceProxy::KubeProxy,
        ports: "http/80".to_owned(),
        health_check_node_port: policy.health_check_node_port,
    }
}

pub(super) fn node(node: NodeId) -> Node {
    Node { name: node_name(node), system: OperatingSystem::Linux }
}

/// Every slice after the first `received` writes.
pub(super) fn slices(api: &Api, received: u32) -> Vec<Slice> {
    let versions = api.versions(received);
    let listed = versions.iter().enumerate().filter_map(|(object, version)| match api.content(*version) {
        Some(Content::Slice(body)) => Some(slice(ObjectId(object), *version, body)),
        _ => None,
    });
    listed.collect()
}

/// Every Service after the first `received` writes.
pub(super) fn services(api: &Api, received: u32) -> Vec<Service> {
    let mut last = BTreeMap::new();
    for (version, write) in (1..).zip(api.services.iter().take(received as usize)) {
        last.insert(write.service, service(write.service, version, write.policy));
    }
    last.into_values().collect()
}

/// Every node after the first `received` writes.
pub(super) fn nodes(api: &Api, received: u32) -> Vec<Node> {
    let mut there = BTreeSet::new();
    for write in api.nodes.iter().take(received as usize) {
        if write.there {
            there.insert(write.node)
        } else {
            there.remove(&write.node)
        };
    }
    there.into_iter().map(node).collect()
}

/// What a consistent read shows after so many writes of slices, Services and nodes.
pub(super) fn snapshot(api: &Api, [slices, services_read, nodes_read]: [u32; 3]) -> Snapshot {
    let versions = api.versions(slices);
    let slices = versions.iter().enumerate().filter_map(|(object, version)| match api.content(*version) {
        Some(Content::Slice(_)) => Some((slice_name(ObjectId(object)), ResourceVersion(version.to_string()))),
        _ => None,
    });
    let services = services(api, services_read).into_iter().map(|service| (service.name, service.version));
    Snapshot { slices: slices.collect(), services: services.collect(), nodes: Some(nodes(api, nodes_read)) }
}
