//! What the packets are, and how many came.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use lastsyn_common::packet::{Bytes, Ipv4, Ipv6, Kind, Packet, Verdict, joins};

use crate::{
    config::Network,
    core::{
        class::Class,
        clock::Monotonic,
        event::{ByFamily, PortAttempts, Tally},
        listener::{Family, Port},
    },
};

/// How many SYNs are remembered, so that one that is sent again is known.
const REMEMBERED: usize = 4096;
/// Headers without options or extensions.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    ports: BTreeMap<Port, PortAttempts>,
    unattributed: ByFamily<Tally>,
    /// Attempts on any interface and port.
    anywhere: u64,
    ignored: Vec<Network>,
    remembered: Remembered,
}

/// The newest SYNs, by everything that is the same when one is sent again.
#[derive(Debug, Default)]
struct Remembered {
    known: BTreeSet<Syn>,
    order: VecDeque<Syn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Syn {
    source: IpAddr,
    destination: IpAddr,
    ports: u32,
    sequence: u32,
}

impl Tallies {
    pub(super) fn new(ignored: &[Network]) -> Self {
        Self { ignored: ignored.to_vec(), ..Self::default() }
    }

    /// Counts a port from now on.
    pub(super) fn watch(&mut self, port: Port, now: Monotonic) {
        self.ports.entry(port).or_insert(PortAttempts { watched_since: now, families: ByFamily::default() });
    }

    pub(super) fn ports(&self) -> BTreeMap<Port, PortAttempts> {
        self.ports.clone()
    }

    pub(super) fn unattributed(&self) -> ByFamily<Tally> {
        self.unattributed
    }

    pub(super) fn anywhere(&self) -> u64 {
        self.anywhere
    }

    /// Attempts inside the pod: they open connections that the namespace's counters show, and hold no drain.
    pub(super) fn inside(&mut self) {
        self.anywhere += 1;
    }

    /// Attempts that nothing more is known of: they may have been for any port, over either family.
    pub(super) fn lost(&mut self, count: u64, now: Monotonic) {
        self.anywhere += count;
        for family in Family::ALL {
            add(self.unattributed.get_mut(family), count, now);
        }
    }

    /// Counts a packet that begins with its IP header. `open` tells whether anything listens on a port.
    pub(super) fn packet(&mut self, packet: &[u8], now: Monotonic, open: impl FnOnce(Port) -> bool) {
        let read = Packet { near: packet, far: packet };
        let (family, verdict) = match packet.first().map(|first| first >> 4) {
            Some(4) => (Family::V4, read.ipv4(0)),
            Some(6) => (Family::V6, read.ipv6(0)),
            _ => return, // the kernel drops it (`ip_rcv_core`, `ip6_rcv_core`)
        };
        // Of datagrams the filter lets through only some, so that none is counted.
        if verdict.is(Kind::Other) || verdict.is(Kind::Short) || verdict.is_datagram() {
            return;
        }
        self.anywhere += 1;
        if verdict.is(Kind::Opaque) {
            add(self.unattributed.get_mut(family), 1, now);
            return;
        }
        let Ok(port) = Port::try_from(verdict.port()) else { return };
        if !self.ports.contains_key(&port) {
            return;
        }
        let class = if verdict.is(Kind::OpaquePort) {
            Class::Opaque
        } else {
            let (syn, joining) = match family {
                Family::V4 => syn_v4(packet, verdict),
                Family::V6 => syn_v6(packet, verdict),
            };
            self.class(syn, joining, open(port))
        };
        let Some(attempts) = self.ports.get_mut(&port) else { return };
        if let Some(tally) = attempts.families.get_mut(family).get_mut(class) {
            add(tally, 1, now);
        }
    }

    fn class(&mut self, syn: Syn, joining: bool, open: bool) -> Class {
        if self.ignored.iter().any(|network| network.contains(syn.source)) {
            Class::Ignored
        } else if !open {
            Class::Refused
        } else if joining {
            Class::Join
        } else if self.remembered.again(syn) {
            Class::Retransmit
        } else {
            Class::New
        }
    }
}

impl Remembered {
    /// Whether it has come before; from now on it has.
    fn again(&mut self, syn: Syn) -> bool {
        if !self.known.insert(syn) {
            return true;
        }
        self.order.push_back(syn);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        false
    }
}

fn syn_v4(packet: &[u8], verdict: Verdict) -> (Syn, bool) {
    let read = Packet { near: packet, far: packet };
    let fixed = verdict.is(Kind::Syn);
    let tcp = if fixed { IPV4_HEADER } else { read.tcp_behind_ipv4(0) };
    let Ipv4 { source, destination, ports } = Ipv4::read(packet, 0, tcp);
    let address = |bits: u32| IpAddr::from(Ipv4Addr::from_bits(u32::from_be(bits)));
    (syn(packet, tcp, address(source), address(destination), ports), joins(&read, tcp, fixed))
}

fn syn_v6(packet: &[u8], verdict: Verdict) -> (Syn, bool) {
    let read = Packet { near: packet, far: packet };
    let fixed = verdict.is(Kind::Syn);
    let tcp = if fixed { IPV6_HEADER } else { read.tcp_behind_ipv6(0) };
    let Ipv6 { source, destination, ports } = Ipv6::read(packet, 0, tcp);
    let address = |words: [u32; 4]| {
        let bits = words.into_iter().fold(0_u128, |bits, word| bits << 32 | u128::from(u32::from_be(word)));
        IpAddr::from(Ipv6Addr::from_bits(bits))
    };
    (syn(packet, tcp, address(source), address(destination), ports), joins(&read, tcp, fixed))
}

fn syn(packet: &[u8], tcp: usize, source: IpAddr, destination: IpAddr, ports: u32) -> Syn {
    Syn { source, destination, ports, sequence: packet.u32(tcp + 4).four() }
}

fn add(tally: &mut Tally, count: u64, now: Monotonic) {
    tally.count += count;
    tally.last = tally.last.max(Some(now));
}
