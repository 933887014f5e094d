//! The addresses of a cluster. Every cluster has the same, for each has namespaces of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the API server listens.
pub const CONTROL_PLANE_V4: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 1);
/// The same host's IPv6 address.
pub(crate) const CONTROL_PLANE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 1);
/// The API server's port.
pub(crate) const API_PORT: u16 = 6443;

/// What Services get their addresses from.
pub(crate) const SERVICE_RANGES: &str = "10.96.0.0/16,fd00:96::/112";
/// The first address of each range, which the API server gives to itself.
pub(crate) const API_SERVICE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0x96, 0, 0, 0, 0, 0, 1))];
/// What all nodes' pods get their addresses from.
pub(crate) const POD_RANGES: &str = "10.244.0.0/16,fd00:244::/32";
/// What load balancers get their addresses from.
pub(crate) const BALANCER_RANGES: [&str; 2] = ["10.20.0.0/16", "fd00:20::/64"];

/// The number of a node, from 1.
pub(crate) type Number = u8;

pub(crate) fn node_v4(node: Number) -> Ipv4Addr {
    Ipv4Addr::new(10, 10, 0, 10 + node)
}

pub(crate) fn node_v6(node: Number) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 0x10 + u16::from(node))
}

/// The ranges of a node's pods.
pub(crate) fn pod_ranges(node: Number) -> [String; 2] {
    [format!("10.244.{node}.0/24"), format!("fd00:244:{node:x}::/64")]
}

/// What pods see as the sender of what their node sends: its end of every pod's wire.
pub(crate) fn pod_gateway_v4(node: Number) -> Ipv4Addr {
    Ipv4Addr::new(10, 244, node, 1)
}

pub(crate) fn pod_gateway_v6(node: Number) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x244, u16::from(node), 0, 0, 0, 0, 1)
}

/// The addresses of a node's pod; no number is given twice.
pub(crate) fn pod_v4(node: Number, pod: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 244, node, 10 + pod)
}

pub(crate) fn pod_v6(node: Number, pod: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x244, u16::from(node), 0, 0, 0, 0, 0x10 + u16::from(pod))
}

/// A load balancer's addresses.
pub(crate) fn balancer(number: u8) -> [IpAddr; 2] {
    [Ipv4Addr::new(10, 20, 0, number).into(), Ipv6Addr::new(0xfd00, 0x20, 0, 0, 0, 0, 0, u16::from(number)).into()]
}

/// A hardware address for each end of a wire.
pub(crate) fn hardware(node: Number, pod: u8, end: u8) -> [u8; 6] {
    [0x02, 0, 0, node, pod, end]
}
