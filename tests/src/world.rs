//! The usual scene: a client, a node that forwards as a node's proxy does, and two pods behind it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Result;

use crate::{
    Families, Host, Lab,
    link::{End, Link},
};

/// The interface of the client and of each pod.
pub const INTERFACE: &str = "eth0";
/// The virtual IPv4 address.
pub const SERVICE_V4: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
/// The virtual IPv6 address.
pub const SERVICE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x96, 0, 0, 0, 0, 0, 0x10);
/// The client's IPv4 address, which the pods see.
pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 2);
/// The client's IPv6 address, which the pods see.
pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 2);

/// The node's addresses on the client's wire.
const NODE: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(10, 10, 0, 1), Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 1));

/// One of the two pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pod {
    /// The one that new connections go to at first.
    A,
    /// The other.
    B,
}

/// How the scene is made.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The families of the pods' addresses. Client and node have both.
    pub families: Families,
    /// The ports that the node forwards.
    pub ports: Vec<u16>,
}

/// Client, node and pods. Connections to the virtual addresses are forwarded to one pod, without masquerade; established
/// ones stay where they are when the forwarding moves.
#[derive(Debug)]
pub struct World {
    /// The lab's names and directory.
    pub lab: Lab,
    /// Where connections come from.
    pub client: Host,
    /// What forwards them.
    pub node: Host,
    /// The pod that is to be drained.
    pub pod_a: Host,
    /// The pod that takes over.
    pub pod_b: Host,
    config: WorldConfig,
}

// === impl Pod ===

impl Pod {
    /// `pod-a` or `pod-b`.
    pub fn role(self) -> &'static str {
        match self {
            Self::A => "pod-a",
            Self::B => "pod-b",
        }
    }

    /// Its IPv4 address.
    pub fn v4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 244, self.subnet(), 2)
    }

    /// Its IPv6 address.
    pub fn v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x244, self.subnet().into(), 0, 0, 0, 0, 2)
    }

    /// The node's IPv4 address on the pod's wire. A kubelet's probes and hooks come from it.
    pub fn gateway_v4(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 244, self.subnet(), 1)
    }

    /// The node's IPv6 address on the pod's wire.
    pub fn gateway_v6(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x244, self.subnet().into(), 0, 0, 0, 0, 1)
    }

    /// The hardware address of its interface.
    pub fn hardware(self) -> [u8; 6] {
        [0x02, 0, 0, 1, self.subnet(), 2]
    }

    /// The hardware address of the node's end of its wire.
    pub fn gateway_hardware(self) -> [u8; 6] {
        [0x02, 0, 0, 1, self.subnet(), 1]
    }

    /// The name of the node's end of its wire.
    pub fn node_interface(self) -> &'static str {
        self.role()
    }

    fn subnet(self) -> u8 {
        match self {
            Self::A => 1,
            Self::B => 2,
        }
    }
}

// === impl WorldConfig ===

impl Default for WorldConfig {
    /// Pods with addresses of both families, and port 80.
    fn default() -> Self {
        Self { families: Families::Dual, ports: vec![80] }
    }
}

// === impl World ===

impl World {
    /// The default scene.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made; the message says what is missing.
    pub fn new() -> Result<Self> {
        Self::with(WorldConfig::default())
    }

    /// A scene of the given kind.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made; the message says what is missing.
    pub fn with(config: WorldConfig) -> Result<Self> {
        let lab = Lab::new()?;
        let client = lab.host("client")?;
        let node = lab.host("node")?;
        node.forward()?;
        Link {
            ends: [
                End {
                    host: &client,
                    interface: INTERFACE,
                    v4: (CLIENT_V4, 24),
                    v6: (CLIENT_V6, 64),
                    hardware: [0x02, 0, 0, 0, 0, 2],
                },
                End {
                    host: &node,
                    interface: "client",
                    v4: (NODE.0, 24),
                    v6: (NODE.1, 64),
                    hardware: [0x02, 0, 0, 0, 0, 1],
                },
            ],
            families: Families::Dual,
            mtu: 1500,
        }
        .make()?;
        client.ip(&format!(
            "route add default via {} dev {INTERFACE}\nroute add default via {} dev {INTERFACE}\n",
            NODE.0, NODE.1
        ))?;
        let pod_a = pod(&lab, &node, Pod::A, config.families)?;
        let pod_b = pod(&lab, &node, Pod::B, config.families)?;
        let world = Self { lab, client, node, pod_a, pod_b, config };
        world.node.nft(
            "table inet service {
                 chain forwarding { }
                 chain prerouting { type nat hook prerouting priority dstnat; jump forwarding; }
             }",
        )?;
        world.route_to(Pod::A)?;
        Ok(world)
    }

    /// The host of a pod.
    pub fn pod(&self, pod: Pod) -> &Host {
        match pod {
            Pod::A => &self.pod_a,
            Pod::B => &self.pod_b,
        }
    }

    /// The virtual addresses with a port, of the families that the pods have, IPv4 first.
    pub fn targets(&self, port: u16) -> Vec<SocketAddr> {
        [IpAddr::from(SERVICE_V4), IpAddr::from(SERVICE_V6)]
            .into_iter()
            .filter(|&address| self.config.families.include(address))
            .map(|address| SocketAddr::new(address, port))
            .collect()
    }

    /// Moves the forwarding of new connections, in one step. Tracked ones, and retransmitted SYNs of tracked ones, go on
    /// to where their first packet went: the node rewrites a connection once.
    ///
    /// # Errors
    ///
    /// When the rules are refused.
    pub fn route_to(&self, pod: Pod) -> Result<()> {
        let ports: Vec<String> = self.config.ports.iter().map(ToString::to_string).collect();
        let ports = ports.join(", ");
        let rules = [
            ("ip", IpAddr::from(SERVICE_V4), IpAddr::from(pod.v4())),
            ("ip6", IpAddr::from(SERVICE_V6), IpAddr::from(pod.v6())),
        ]
        .into_iter()
        .filter(|&(_, service, _)| self.config.families.include(service))
        .map(|(family, service, pod)| {
            format!(
                "add rule inet service forwarding {family} daddr {service} tcp dport {{ {ports} }} dnat {family} to {pod}\n"
            )
        });
        let mut transaction = vec!["flush chain inet service forwarding\n".to_owned()];
        transaction.extend(rules);
        self.node.nft(&transaction.concat())
    }
}

fn pod(lab: &Lab, node: &Host, pod: Pod, families: Families) -> Result<Host> {
    let host = lab.host(pod.role())?;
    Link {
        ends: [
            End {
                host: node,
                interface: pod.node_interface(),
                v4: (pod.gateway_v4(), 24),
                v6: (pod.gateway_v6(), 64),
                hardware: pod.gateway_hardware(),
            },
            End { host: &host, interface: INTERFACE, v4: (pod.v4(), 24), v6: (pod.v6(), 64), hardware: pod.hardware() },
        ],
        families,
        mtu: 1500,
    }
    .make()?;
    for gateway in [IpAddr::from(pod.gateway_v4()), IpAddr::from(pod.gateway_v6())] {
        if families.include(gateway) {
            host.ip(&format!("route add default via {gateway} dev {INTERFACE}\n"))?;
        }
    }
    Ok(host)
}
