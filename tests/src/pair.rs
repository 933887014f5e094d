//! The smallest scene: a client and a pod on one wire. Nothing is between them, so that what is sent can be counted
//! exactly.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Result;

use crate::{
    Families, Host, Lab,
    link::{End, Link},
    raw::Segment,
};

/// The interface of client and pod alike.
pub const INTERFACE: &str = "eth0";
/// The client's IPv4 address.
pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// The client's IPv6 address.
pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// The pod's IPv4 address.
pub const POD_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The pod's IPv6 address.
pub const POD_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// The hardware address of the client's interface.
pub const CLIENT_HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
/// The hardware address of the pod's interface.
pub const POD_HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 2];

/// A client and a pod on one wire. The pod answers any source address over it; the client drops what is not for it, so
/// answers to forged sources vanish.
#[derive(Debug)]
pub struct Pair {
    /// The lab's names and directory.
    pub lab: Lab,
    /// Where connections come from.
    pub client: Host,
    /// Where they go.
    pub pod: Host,
    /// The families of the pod's addresses.
    pub families: Families,
}

// === impl Pair ===

impl Pair {
    /// A pair with addresses of both families.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made; the message says what is missing.
    pub fn new() -> Result<Self> {
        Self::with(Families::Dual)
    }

    /// A pair with addresses of the given families.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made; the message says what is missing.
    pub fn with(families: Families) -> Result<Self> {
        let lab = Lab::new()?;
        let client = lab.host("client")?;
        let pod = lab.host("pod")?;
        Link {
            ends: [
                End {
                    host: &client,
                    interface: INTERFACE,
                    v4: (CLIENT_V4, 24),
                    v6: (CLIENT_V6, 64),
                    hardware: CLIENT_HARDWARE,
                },
                End { host: &pod, interface: INTERFACE, v4: (POD_V4, 24), v6: (POD_V6, 64), hardware: POD_HARDWARE },
            ],
            families,
            mtu: 1500,
        }
        .make()?;
        for gateway in [IpAddr::from(CLIENT_V4), IpAddr::from(CLIENT_V6)] {
            if families.include(gateway) {
                pod.ip(&format!("route add default via {gateway} dev {INTERFACE}\n"))?;
            }
        }
        Ok(Self { lab, client, pod, families })
    }

    /// The pod's addresses with a port, IPv4 first.
    pub fn targets(&self, port: u16) -> Vec<SocketAddr> {
        [IpAddr::from(POD_V4), IpAddr::from(POD_V6)]
            .into_iter()
            .filter(|&address| self.families.include(address))
            .map(|address| SocketAddr::new(address, port))
            .collect()
    }

    /// A SYN from any source to the pod, for a [`Sender`](crate::raw::Sender) on the client's interface. Sources other
    /// than the client's own stay half-open in the pod: a client that gets an answer it did not ask for would reset it.
    pub fn syn(&self, source: SocketAddr, destination: SocketAddr) -> Segment {
        Segment::syn(source, destination).between(CLIENT_HARDWARE, POD_HARDWARE)
    }
}
