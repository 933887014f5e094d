//! Which node an address is of: its own, or one of its pods'.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv6Addr},
};

use super::convert::NodeTarget;
use crate::{config::Network, core::cluster::NodeName};

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// It is a node's own: what the node's kube-proxy masquerades carries it, and what processes of the node's network send.
    Node(&'a NodeName),
    /// It is in the network of a node's pods.
    PodsOf(&'a NodeName),
}

/// The addresses and pod networks of all nodes that are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    addresses: BTreeMap<IpAddr, NodeName>,
    /// By their first address. They do not overlap.
    networks: BTreeMap<IpAddr, (Network, NodeName)>,
}

impl Places {
    /// By the list of nodes. An address that two nodes claim names neither.
    pub fn of(targets: &[NodeTarget]) -> Self {
        let mut places = Self::default();
        let mut claimed_twice = BTreeSet::new();
        for NodeTarget { node, addresses, pod_networks } in targets {
            for address in addresses {
                let before = places.addresses.insert(*address, node.name.clone());
                if before.is_some_and(|before| before != node.name) {
                    claimed_twice.insert(*address);
                }
            }
            for network in pod_networks {
                places.networks.insert(network.address(), (*network, node.name.clone()));
            }
        }
        places.addresses.retain(|address, _| !claimed_twice.contains(address));
        places
    }

    /// Where an address is; `None` outside, and where nobody knows.
    pub fn of_address(&self, address: IpAddr) -> Option<Place<'_>> {
        let own = self.addresses.get(&address).map(Place::Node);
        own.or_else(|| self.network_at(address).map(|(_, node)| Place::PodsOf(node)))
    }

    /// The same for all addresses that begin with the 64 bits of this one; `None` also where they are in several places.
    pub fn of_first_64_bits(&self, address: Ipv6Addr) -> Option<Place<'_>> {
        let (network, node) = self.network_at(address.into())?;
        (network.length() <= 64).then_some(Place::PodsOf(node))
    }

    /// The nodes' own addresses of IPv6.
    pub fn nodes_v6(&self) -> BTreeSet<Ipv6Addr> {
        let v6 = |address: &IpAddr| match address {
            IpAddr::V6(v6) => Some(*v6),
            IpAddr::V4(_) => None,
        };
        self.addresses.keys().filter_map(v6).collect()
    }

    fn network_at(&self, address: IpAddr) -> Option<&(Network, NodeName)> {
        let (_, found) = self.networks.range(..=address).next_back()?;
        Some(found).filter(|(network, _)| network.contains(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{cluster::Node, confirm::OperatingSystem};

    fn target(name: &str, addresses: &[&str], networks: &[&str]) -> NodeTarget {
        NodeTarget {
            node: Node { name: NodeName(name.to_owned()), system: OperatingSystem::Linux },
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            pod_networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
        }
    }

    fn words(place: Option<Place<'_>>) -> String {
        match place {
            Some(Place::Node(node)) => format!("{node}"),
            Some(Place::PodsOf(node)) => format!("pods of {node}"),
            None => "outside".to_owned(),
        }
    }

    #[test]
    fn an_address_is_a_node_s_or_its_pods_or_outside() {
        let places = Places::of(&[
            target("a", &["10.0.0.1", "fd00::1"], &["10.244.0.0/24", "fd00:244::/64"]),
            target("b", &["10.0.0.2", "fd00::2"], &["10.244.1.0/24", "fd00:244:0:1::/72"]),
        ]);
        let cases = [
            ("10.0.0.1", "a"),
            ("10.0.0.2", "b"),
            ("10.0.0.3", "outside"),
            ("10.244.0.0", "pods of a"),
            ("10.244.0.255", "pods of a"),
            ("10.244.1.7", "pods of b"),
            ("10.244.2.0", "outside"),
            ("9.255.255.255", "outside"),
            ("fd00::2", "b"),
            ("fd00:244::9", "pods of a"),
            ("fd00:244:0:1::9", "pods of b"),
        ];
        for (address, expected) in cases {
            assert_eq!(words(places.of_address(address.parse().unwrap())), expected, "{address}");
        }
        let first = |address: &str| words(places.of_first_64_bits(address.parse().unwrap()));
        assert_eq!(first("fd00:244::"), "pods of a");
        assert_eq!(first("fd00:244:0:1::"), "outside", "the rest of these 64 bits may be another's");
        assert_eq!(first("fd00::"), "outside");
        assert_eq!(places.nodes_v6().len(), 2);
    }

    #[test]
    fn an_address_that_two_nodes_claim_names_neither() {
        let places = Places::of(&[target("a", &["10.0.0.1"], &[]), target("b", &["10.0.0.1", "10.0.0.2"], &[])]);
        assert_eq!(words(places.of_address("10.0.0.1".parse().unwrap())), "outside");
        assert_eq!(words(places.of_address("10.0.0.2".parse().unwrap())), "b");
    }
}
