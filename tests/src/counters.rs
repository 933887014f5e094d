//! The counters that a host's kernel keeps: TCP's, and its interfaces'.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};

use crate::Host;

/// One reading of a host's protocol counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<(String, String), u64>);

/// What an interface has received and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were to be sent and were dropped, by the other end of a virtual wire too.
    pub unsent: u64,
}

// === impl Counters ===

impl Counters {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// When the kernel's files cannot be read.
    pub fn of(host: &Host) -> Result<Self> {
        // `/proc/net` is the process's main thread's; this thread is the one in the host.
        let (basic, extended) = host.run(|| {
            (fs::read_to_string("/proc/thread-self/net/snmp"), fs::read_to_string("/proc/thread-self/net/netstat"))
        });
        let context = || format!("the counters of {}", host.role());
        let (basic, extended) = (basic.with_context(context)?, extended.with_context(context)?);
        Ok(Self(parse(&basic).chain(parse(&extended)).collect()))
    }

    /// A counter of TCP such as `PassiveOpens`, `InSegs` or `RetransSegs`; zero where the kernel has none of that name.
    pub fn tcp(&self, name: &str) -> u64 {
        self.get("Tcp", name)
    }

    /// A counter of Linux's TCP such as `ListenOverflows`, `ListenDrops`, `SyncookiesSent` or `TCPReqQFullDrop`; zero
    /// where the kernel has none of that name.
    pub fn tcp_ext(&self, name: &str) -> u64 {
        self.get("TcpExt", name)
    }

    fn get(&self, protocol: &str, name: &str) -> u64 {
        self.0.get(&(protocol.to_owned(), name.to_owned())).copied().unwrap_or(0)
    }
}

/// The packet counters of one of a host's interfaces.
///
/// # Errors
///
/// When the host has no such interface.
pub fn interface_counters(host: &Host, interface: &str) -> Result<InterfaceCounters> {
    let context = || format!("the counters of {interface} of {}", host.role());
    let text = host.run(|| fs::read_to_string("/proc/thread-self/net/dev")).with_context(context)?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == interface)
        .and_then(|(_, numbers)| {
            // Eight of receiving, then eight of sending: bytes, packets, ...
            let number = |at| numbers.split_ascii_whitespace().nth(at)?.parse().ok();
            Some(InterfaceCounters { received: number(1)?, sent: number(9)?, unsent: number(11)? })
        })
        .with_context(context)
}

/// The files have two lines for each protocol, one with names and one with numbers: `Tcp: RtoAlgorithm RtoMin ...`.
fn parse(text: &str) -> impl Iterator<Item = ((String, String), u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.chunks_exact(2).filter_map(|pair| match pair {
        [names, numbers] => Some((names.split_once(':')?, numbers.split_once(':')?)),
        _ => None,
    });
    pairs
        .flat_map(|((protocol, names), (_, numbers))| {
            names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace()).filter_map(move |(name, number)| {
                // `MaxConn` is -1 where there is no limit.
                Some(((protocol.to_owned(), name.to_owned()), number.parse().ok()?))
            })
        })
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_paired() {
        let text = "Tcp: MaxConn ActiveOpens PassiveOpens\nTcp: -1 7 12\nUdp: InErrors\nUdp: 3\n";
        let counters = Counters(parse(text).collect());
        assert_eq!(counters.tcp("PassiveOpens"), 12);
        assert_eq!(counters.get("Udp", "InErrors"), 3);
        assert_eq!(counters.tcp("InErrors"), 0);
    }
}
