//! A wire between two hosts: a pair of virtual Ethernet interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::{Context, Result};

use crate::Host;

/// The IP families of a host's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// Both.
    #[default]
    Dual,
    /// IPv4 only. IPv6 still has its link-local address, as in a pod.
    V4,
    /// IPv6 only.
    V6,
}

/// One end of a wire.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Whose.
    pub host: &'a Host,
    /// The interface's name.
    pub interface: &'a str,
    /// Its IPv4 address and prefix length.
    pub v4: (Ipv4Addr, u8),
    /// Its IPv6 address and prefix length.
    pub v6: (Ipv6Addr, u8),
    /// Its hardware address.
    pub hardware: [u8; 6],
}

/// A wire that carries packets as soon as it is made: the addresses are not probed for duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The two ends.
    pub ends: [End<'a>; 2],
    /// Which of the addresses are given to the interfaces.
    pub families: Families,
    /// The largest packet in bytes. 1500 is Ethernet's own.
    pub mtu: u32,
}

// === impl Families ===

impl Families {
    /// Whether an address is of one of them.
    pub fn include(self, address: impl Into<IpAddr>) -> bool {
        match self {
            Self::Dual => true,
            Self::V4 => address.into().is_ipv4(),
            Self::V6 => address.into().is_ipv6(),
        }
    }
}

// === impl End ===

impl End<'_> {
    fn address_lines(&self, families: Families) -> String {
        [(IpAddr::from(self.v4.0), self.v4.1), (IpAddr::from(self.v6.0), self.v6.1)]
            .into_iter()
            .filter(|&(address, _)| families.include(address))
            .map(|(address, length)| {
                let probe = if address.is_ipv6() { "nodad" } else { "" };
                format!("address add {address}/{length} dev {} {probe}\n", self.interface)
            })
            .collect::<Vec<_>>()
            .concat()
    }

    fn description(&self, mtu: u32) -> String {
        let hardware = self.hardware.map(|byte| format!("{byte:02x}")).join(":");
        format!("name {} mtu {mtu} address {hardware}", self.interface)
    }
}

// === impl Link ===

impl Link<'_> {
    /// Makes the two interfaces, inside the hosts from the first moment on, and brings them up.
    ///
    /// # Errors
    ///
    /// When an interface of that name exists already, or the kernel refuses an address.
    pub fn make(&self) -> Result<()> {
        let [near, far] = &self.ends;
        near.host
            .ip(&format!(
                "link add {} type veth peer {} netns {}\n",
                near.description(self.mtu),
                far.description(self.mtu),
                far.host.name()
            ))
            .with_context(|| format!("no wire between {} and {}", near.host.role(), far.host.role()))?;
        for end in &self.ends {
            end.host.ip(&format!("{}link set {} up\n", end.address_lines(self.families), end.interface))?;
        }
        Ok(())
    }
}
