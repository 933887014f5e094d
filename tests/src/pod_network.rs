//! A node with two pods and a client outside, by how the node's network plugin connects its pods. The client's packets reach
//! the pods with the node's own address, as by a Service with the external policy `Cluster`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::Result;

use crate::{
    End, Families, Host, Lab, Link, Outcome, await_condition,
    bpf::{Does, Place, Program, interface_index},
    connect_once,
};

const INTERFACE: &str = "eth0";
/// A port of the pod that nothing listens on.
const CLOSED: u16 = 9;
/// A bridge forwards some time after it is up.
const READY: Duration = Duration::from_secs(20);
const TRY: Duration = Duration::from_secs(1);
const CLIENT: Addresses = Addresses { v4: [10, 10, 0, 2], v6: [0x10, 2], hardware: 2 };
const NODE: Addresses = Addresses { v4: [10, 10, 0, 1], v6: [0x10, 1], hardware: 1 };
const POD: Addresses = Addresses { v4: [10, 244, 1, 2], v6: [0x244, 2], hardware: 0x12 };
const GATEWAY: Addresses = Addresses { v4: [10, 244, 1, 1], v6: [0x244, 1], hardware: 0x11 };
const OTHER_POD: Addresses = Addresses { v4: [10, 244, 1, 3], v6: [0x244, 3], hardware: 0x13 };

/// How the pods are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// Each by a wire of its own, between which the node routes (`ptp`, Calico).
    Routed,
    /// All on one bridge of the node's (`bridge`, flannel).
    Bridge,
    /// Each by a wire; what is for the pod is handed to its end of it by a program at the ingress of another wire, past the
    /// node's end (`bpf_redirect_peer`, Cilium).
    RedirectPeer,
}

/// The scene.
#[derive(Debug)]
pub struct PodNetwork {
    /// The lab's names and directory.
    pub lab: Lab,
    /// Outside, behind the node.
    pub client: Host,
    /// The node.
    pub node: Host,
    /// The pod.
    pub pod: Host,
    /// Another pod of the node.
    pub other_pod: Host,
    _program: Option<Program>,
}

/// The addresses of one end of a wire, in short.
#[derive(Clone, Copy)]
struct Addresses {
    v4: [u8; 4],
    v6: [u16; 2],
    hardware: u8,
}

impl Addresses {
    fn v4(self) -> Ipv4Addr {
        self.v4.into()
    }

    fn v6(self) -> Ipv6Addr {
        let [subnet, last] = self.v6;
        [0xfd00, subnet, 0, 0, 0, 0, 0, last].into()
    }

    fn of<'a>(self, host: &'a Host, interface: &'a str) -> End<'a> {
        End { host, interface, v4: (self.v4(), 24), v6: (self.v6(), 64), hardware: [2, 0, 0, 0, 0, self.hardware] }
    }
}

impl PodNetwork {
    /// Makes it.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made; the message says what is missing.
    pub fn new(plugin: Plugin) -> Result<Self> {
        let lab = Lab::new()?;
        let [client, node, pod, other_pod] = ["client", "node", "pod", "other-pod"].map(|role| lab.host(role));
        let (client, node, pod, other_pod) = (client?, node?, pod?, other_pod?);
        node.forward()?;
        let link = |ends| Link { ends, families: Families::Dual, mtu: 1500 }.make();
        link([CLIENT.of(&client, INTERFACE), NODE.of(&node, "client")])?;
        let default = |host: &Host, by: Addresses| {
            let (v4, v6) = (by.v4(), by.v6());
            host.ip(&format!(
                "route add default via {v4} dev {INTERFACE}\nroute add default via {v6} dev {INTERFACE}\n"
            ))
        };
        default(&client, NODE)?;
        // The node's ends have another hardware address each; all have the pods' gateway for their address.
        for (host, end, interface, hardware) in [(&pod, POD, "pod", 0x21), (&other_pod, OTHER_POD, "other-pod", 0x22)] {
            link([Addresses { hardware, ..GATEWAY }.of(&node, interface), end.of(host, INTERFACE)])?;
            default(host, GATEWAY)?;
        }
        let program = match plugin {
            Plugin::Routed => Self::route(&node)?,
            Plugin::Bridge => Self::bridge(&node)?,
            Plugin::RedirectPeer => Self::redirect(&node)?,
        };
        node.nft(&format!(
            "table inet hide {{
                 chain out {{
                     type nat hook postrouting priority srcnat;
                     ip saddr {} masquerade
                     ip6 saddr {} masquerade
                 }}
             }}",
            CLIENT.v4(),
            CLIENT.v6()
        ))?;
        for target in Self::pod(CLOSED) {
            for host in [&client, &node, &other_pod] {
                await_condition("the way to the pod", READY, || {
                    connect_once(host, target, TRY).outcome == Outcome::Refused
                })?;
            }
        }
        Ok(Self { lab, client, node, pod, other_pod, _program: program })
    }

    /// A port at the pod's addresses, IPv4 first.
    pub fn pod(port: u16) -> [SocketAddr; 2] {
        [(IpAddr::from(POD.v4()), port).into(), (IpAddr::from(POD.v6()), port).into()]
    }

    /// Two wires share the gateway's address, so that each pod is reached by a route of its own.
    fn route(node: &Host) -> Result<Option<Program>> {
        for (pod, interface) in [(POD, "pod"), (OTHER_POD, "other-pod")] {
            node.ip(&Self::routes(pod, interface))?;
            node.set_sysctl(&format!("net.ipv4.conf.{interface}.proxy_arp"), "1")?;
        }
        node.set_sysctl("net.ipv6.conf.all.proxy_ndp", "1")?;
        node.ip(&format!("neigh add proxy {} dev pod\nneigh add proxy {} dev other-pod\n", OTHER_POD.v6(), POD.v6()))?;
        Ok(None)
    }

    fn bridge(node: &Host) -> Result<Option<Program>> {
        let (v4, v6) = (GATEWAY.v4(), GATEWAY.v6());
        node.ip(&format!(
            "link add bridge0 type bridge\naddress flush dev pod\naddress flush dev other-pod\n\
             link set pod master bridge0\nlink set other-pod master bridge0\n\
             address add {v4}/24 dev bridge0\naddress add {v6}/64 dev bridge0 nodad\nlink set bridge0 up\n"
        ))?;
        Ok(None)
    }

    /// The node sends to the pods into a wire both of whose ends are its own. A program at the far end takes it from there.
    fn redirect(node: &Host) -> Result<Option<Program>> {
        Self::route(node)?;
        node.ip(&format!(
            "link add host0 type veth peer name net0\nlink set host0 arp off up\nlink set net0 arp off up\n\
             route del {0}/32 dev pod\nroute add {0}/32 dev host0 src {2}\n\
             route del {1}/128 dev pod\nroute add {1}/128 dev host0 src {3}\n",
            POD.v4(),
            POD.v6(),
            GATEWAY.v4(),
            GATEWAY.v6(),
        ))?;
        let to_pod = Does::HandsToPeerOf(interface_index(node, "pod")?);
        Program::attach(node, "net0", Place::First, to_pod).map(Some)
    }

    fn routes(pod: Addresses, interface: &str) -> String {
        let (v4, v6, from_v4, from_v6) = (pod.v4(), pod.v6(), GATEWAY.v4(), GATEWAY.v6());
        format!("route add {v4}/32 dev {interface} src {from_v4}\nroute add {v6}/128 dev {interface} src {from_v6}\n")
    }
}
