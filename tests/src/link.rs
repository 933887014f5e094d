//! A wire between two hosts: a pair of virtual Ethernet interfaces.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{Host, wait::await_condition};

/// How long the kernel may take until it answers for a new address.
const READY: Duration = Duration::from_secs(5);
/// The flag of an address that is not used yet (`IFA_F_TENTATIVE`).
const TENTATIVE: u32 = 0x40;

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

    /// Whether the kernel answers for the interface's IPv6 addresses. It begins to from a work queue, some time after the
    /// address was added; a first packet before that would wait a second for the neighbour to be asked for again.
    fn is_ready(&self, families: Families) -> bool {
        // `/proc/net` is the process's main thread's; this thread is the one in the host.
        let read = || {
            let addresses = fs::read_to_string("/proc/thread-self/net/if_inet6")?;
            fs::read_to_string("/proc/thread-self/net/igmp6").map(|groups| (addresses, groups))
        };
        let Ok((addresses, groups)) = self.host.run(read) else { return false };
        let own = |text: &str, column: usize| -> Vec<Vec<String>> {
            text.lines()
                .map(|line| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>())
                .filter(|fields| fields.get(column).is_some_and(|name| name == self.interface))
                .collect()
        };
        let addresses = own(&addresses, 5); // address, index, prefix length, scope, flags, name
        let groups = own(&groups, 1); // index, name, group, ...
        let is_settled = |fields: &Vec<String>| {
            fields
                .get(4)
                .and_then(|flags| u32::from_str_radix(flags, 16).ok())
                .is_some_and(|flags| flags & TENTATIVE == 0)
        };
        let is_asked_for = |address: &String| {
            // The solicited-node group ends like the address (RFC 4291, 2.7.1).
            let group = format!("ff0200000000000000000001ff{}", address.get(26..).unwrap_or_default());
            groups.iter().any(|fields| fields.get(2) == Some(&group))
        };
        let expected = 1 + usize::from(families.include(self.v6.0)); // the link-local one too
        addresses.len() == expected
            && addresses.iter().all(is_settled)
            && addresses.iter().filter_map(|fields| fields.first()).all(is_asked_for)
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
            end.host.ip(&format!("link set {} up\n", end.interface))?;
        }
        for end in &self.ends {
            end.host.ip(&end.address_lines(self.families))?;
        }
        for end in &self.ends {
            let what = format!("{} of {} answering for its addresses", end.interface, end.host.role());
            await_condition(&what, READY, || end.is_ready(self.families))?;
        }
        Ok(())
    }
}
