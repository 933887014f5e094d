//! Who sends the SYNs that count, as the programs keep it while a drain runs.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use aya::maps::MapError;
use lastsyn_common::sources;

use super::{object::Loaded, slots::Slots};
use crate::core::{
    clock::Monotonic,
    listener::{Family, Port},
};

/// Who sent the SYNs that count, since [`Sensor::keep_sources`](super::Sensor::keep_sources).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Each source of each listener.
    pub sources: Vec<KeptSource>,
    /// How many times one gave way to another, as more came than are kept at once.
    pub forgotten: u64,
}

/// A source of one listener's SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSource {
    /// The listener.
    pub port: Port,
    /// The family.
    pub family: Family,
    /// The IPv4 address, or the first 64 bits of the IPv6 address, or all of it.
    pub address: IpAddr,
    /// Whether it is the whole address.
    pub whole: bool,
    /// How many.
    pub count: u64,
    /// When the last one came.
    pub last: Monotonic,
    /// When the last one came that was not sent again.
    pub opened: Option<Monotonic>,
}

/// What the agent knows of the map that the kernel does not.
#[derive(Debug, Default)]
pub(super) struct SourceMap {
    /// How many sources had been taken in when it was last emptied.
    added_before: u64,
    /// The addresses that are sources of their own.
    whole: BTreeSet<Ipv6Addr>,
}

impl SourceMap {
    /// Begins to keep sources anew, or ends; nothing of before is left.
    pub(super) fn keep(&mut self, loaded: &mut Loaded, wanted: bool) -> Result<(), MapError> {
        loaded.sources_wanted.set(0, 0_u64, 0)?;
        let known: Vec<_> = loaded.sources.keys().collect::<Result<_, _>>()?;
        for source in known {
            match loaded.sources.remove(&source) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        self.added_before = added(loaded)?;
        if wanted { loaded.sources_wanted.set(0, 1_u64, 0) } else { Ok(()) }
    }

    /// These IPv6 addresses are sources of their own from now on, and no others.
    pub(super) fn keep_whole(&mut self, loaded: &mut Loaded, addresses: &BTreeSet<Ipv6Addr>) -> Result<(), MapError> {
        for gone in self.whole.difference(addresses) {
            match loaded.whole.remove(&words(*gone)) {
                Ok(()) | Err(MapError::KeyNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        // What has not gone in by an error is tried again the next time.
        self.whole.retain(|known| addresses.contains(known));
        for new in addresses {
            if !self.whole.contains(new) {
                loaded.whole.insert(words(*new), 0, 0)?;
                self.whole.insert(*new);
            }
        }
        Ok(())
    }

    /// What is kept.
    pub(super) fn read(&self, loaded: &Loaded, slots: &Slots) -> Result<Kept, MapError> {
        let (mut kept, mut there) = (Vec::new(), 0);
        for source in loaded.sources.keys() {
            let source = source?;
            let cpus = match loaded.sources.get(&source, 0) {
                Ok(cpus) => cpus,
                // It gave way just now.
                Err(MapError::KeyNotFound) => continue,
                Err(error) => return Err(error),
            };
            there += 1;
            let (slot, v6) = sources::slot_and_family(source.listener);
            let Some((port, _)) = slots.iter().find(|(_, assigned)| assigned.slot == slot) else { continue };
            let newest = |of: fn(&sources::Knocks) -> u64| cpus.iter().map(of).max().unwrap_or_default();
            let opened = newest(|cpu| cpu.opened_ns);
            kept.push(KeptSource {
                port,
                family: if v6 { Family::V6 } else { Family::V4 },
                address: address(source, v6),
                whole: !v6 || source.host != 0,
                count: cpus.iter().map(|cpu| cpu.count).sum(),
                last: Monotonic::from_nanos(newest(|cpu| cpu.last_ns)),
                opened: (opened > 0).then(|| Monotonic::from_nanos(opened)),
            });
        }
        let taken = added(loaded)?.saturating_sub(self.added_before);
        Ok(Kept { sources: kept, forgotten: taken.saturating_sub(there) })
    }
}

fn added(loaded: &Loaded) -> Result<u64, MapError> {
    Ok(loaded.sources_added.get(&0, 0)?.iter().sum())
}

fn address(source: sources::Source, v6: bool) -> IpAddr {
    let network = sources::bytes(source.network);
    if v6 {
        let host = sources::bytes(source.host);
        let mut octets = [0; 16];
        let both = network.iter().chain(&host);
        octets.iter_mut().zip(both).for_each(|(octet, byte)| *octet = *byte);
        Ipv6Addr::from(octets).into()
    } else {
        let [a, b, c, d, ..] = network;
        Ipv4Addr::new(a, b, c, d).into()
    }
}

/// An address as the program has it.
fn words(address: Ipv6Addr) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(address.octets().as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use lastsyn_common::sources::joined;

    use super::*;

    #[test]
    fn an_address_comes_back_as_the_program_has_it() {
        let whole: Ipv6Addr = "2001:db8:1:2:3:4:5:6".parse().unwrap();
        let [a, b, c, d] = words(whole);
        let of = |host| sources::Source { network: joined(a, b), host, listener: 0 };
        assert_eq!(address(of(joined(c, d)), true), IpAddr::from(whole));
        assert_eq!(address(of(0), true), "2001:db8:1:2::".parse::<IpAddr>().unwrap());
        let v4 = Ipv4Addr::new(192, 0, 2, 7);
        let source = sources::Source { network: joined(u32::from_ne_bytes(v4.octets()), 0), ..of(0) };
        assert_eq!(address(source, false), IpAddr::from(v4));
    }
}
