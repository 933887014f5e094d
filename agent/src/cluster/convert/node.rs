//! Nodes.

use std::net::IpAddr;

use k8s_openapi::{api::core::v1::Node as ApiNode, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use super::{label, name, slice::address};
use crate::{
    config::Network,
    core::{
        cluster::{Node, NodeName},
        confirm::OperatingSystem,
    },
};

/// The label that every kubelet sets.
const SYSTEM: &str = "kubernetes.io/os";

/// A node, and where its health server may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTarget {
    /// Which.
    pub node: Node,
    /// Its addresses of type `InternalIP`, in the order in which it lists them. None: there is nothing to ask.
    pub addresses: Vec<IpAddr>,
    /// The networks that its pods' addresses are from (`spec.podCIDRs`); none where the network plugin hands them out
    /// itself.
    pub pod_networks: Vec<Network>,
}

/// What the core is told of a node, by its metadata alone; `None` where it has no name, which no API server sends.
pub fn node(metadata: &ObjectMeta) -> Option<Node> {
    Some(Node { name: NodeName(name(metadata)?.to_owned()), system: system(label(metadata, SYSTEM)) })
}

/// A node, and where to ask it. Where the label is missing, what kubelet says of itself does.
pub fn target(node_object: &ApiNode) -> Option<NodeTarget> {
    let mut node = node(&node_object.metadata)?;
    let status = node_object.status.as_ref();
    if node.system == OperatingSystem::Unknown {
        node.system = system(status.and_then(|status| Some(status.node_info.as_ref()?.operating_system.as_str())));
    }
    let addresses = status.and_then(|status| status.addresses.as_deref()).unwrap_or_default();
    let internal = addresses.iter().filter(|address| address.type_ == "InternalIP");
    let networks = node_object.spec.as_ref().and_then(|spec| spec.pod_cidrs.as_deref()).unwrap_or_default();
    Some(NodeTarget {
        node,
        addresses: internal.filter_map(|entry| address(&entry.address)).collect(),
        pod_networks: networks.iter().filter_map(|network| network.parse().ok()).collect(),
    })
}

/// Whether a node is the one that the pod runs on.
pub fn is_ours(target: &NodeTarget, ours: &NodeName) -> bool {
    target.node.name == *ours
}

fn system(name: Option<&str>) -> OperatingSystem {
    match name {
        Some("linux") => OperatingSystem::Linux,
        Some("windows") => OperatingSystem::Windows,
        _ => OperatingSystem::Unknown,
    }
}
