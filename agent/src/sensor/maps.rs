//! The maps: which ports are counted, and the counts as sums over the CPUs with the newest time.

use std::net::IpAddr;

use aya::maps::{Array, MapData, MapError, PerCpuArray, PerCpuValues, lpm_trie::Key};
use lastsyn_common::counters::{self, PortPage, Witness, counter_index, port_index};

use super::object::Loaded;
use crate::{
    config::Network,
    core::{
        class::Class,
        clock::Monotonic,
        event::{Attempts, ByFamily, Tally},
        listener::Family,
    },
};

/// What one slot has counted, per family.
pub(super) fn attempts(loaded: &Loaded, slot: u8) -> Result<ByFamily<Attempts>, MapError> {
    let mut families = ByFamily::<Attempts>::default();
    for family in Family::ALL {
        for class in counters::Class::ALL {
            let values = loaded.counters.get(&counter_index(slot, family == Family::V6, class), 0)?;
            if let Some(known) = families.get_mut(family).get_mut(named(class)) {
                *known = sum(&values);
            }
        }
    }
    Ok(families)
}

/// Every packet that may open a connection, on every interface.
pub(super) fn attempts_anywhere(
    witness: &PerCpuArray<impl std::borrow::Borrow<MapData>, Witness>,
) -> Result<u64, MapError> {
    Ok(witness.get(&0, 0)?.iter().map(|cpu| cpu.attempts).sum())
}

/// The program's class by the name that the core has for it.
fn named(class: counters::Class) -> Class {
    match class {
        counters::Class::New => Class::New,
        counters::Class::Retransmit => Class::Retransmit,
        counters::Class::Refused => Class::Refused,
        counters::Class::Probe => Class::Probe,
        counters::Class::Ignored => Class::Ignored,
        counters::Class::Join => Class::Join,
        counters::Class::Stray => Class::Stray,
        counters::Class::Opaque => Class::Opaque,
    }
}

fn sum(values: &PerCpuValues<counters::Tally>) -> Tally {
    values.iter().fold(Tally::default(), |sum, cpu| Tally {
        count: sum.count + cpu.count,
        last: sum.last.max((cpu.count > 0).then_some(Monotonic::from_nanos(cpu.last_ns))),
    })
}

/// Puts a TCP port's slot into the map. The agent is the only writer; the programs may read while it does.
pub(super) fn set_slot(loaded: &mut Loaded, port: u16, slot: u8) -> Result<(), MapError> {
    set_slot_in(&mut loaded.ports, port, slot)
}

/// The same for a UDP port.
pub(super) fn set_datagram_slot(loaded: &mut Loaded, port: u16, slot: u8) -> Result<(), MapError> {
    set_slot_in(&mut loaded.ports_udp, port, slot)
}

fn set_slot_in(ports: &mut Array<MapData, PortPage>, port: u16, slot: u8) -> Result<(), MapError> {
    let (page, place) = port_index(port);
    let mut entry = ports.get(&page, 0)?;
    if let Some(known) = entry.slots.get_mut(place) {
        *known = slot;
    }
    ports.set(page, entry, 0)
}

/// Has SYNs from a network ignored.
pub(super) fn ignore(loaded: &mut Loaded, network: Network) -> Result<(), MapError> {
    let length = network.length().into();
    match network.address() {
        IpAddr::V4(address) => loaded.ignored_v4.insert(&Key::new(length, u32::from(address).to_be()), 0, 0),
        IpAddr::V6(address) => {
            let mut words = [0; 4];
            for (word, bytes) in words.iter_mut().zip(address.octets().as_chunks().0) {
                *word = u32::from_ne_bytes(*bytes);
            }
            loaded.ignored_v6.insert(&Key::new(length, words), 0, 0)
        }
    }
}
