//! Reading the counters: the sum over the CPUs, and the newest time.

use aya::maps::{MapError, PerCpuArray, PerCpuValues};
use lastsyn_common::counters::{Class, Counters, Witness, counter_index};

use super::object::Loaded;
use crate::core::{
    clock::Monotonic,
    event::{Attempts, ByFamily, Tally},
    listener::Family,
};

/// What one slot has counted, per family.
pub(super) fn attempts(loaded: &Loaded, slot: u8) -> Result<ByFamily<Attempts>, MapError> {
    let mut families = ByFamily::default();
    for family in Family::ALL {
        let values = loaded.counters.get(&counter_index(slot, family == Family::V6), 0)?;
        *families.get_mut(family) = Attempts { new: tally(&values, Class::New), opaque: tally(&values, Class::Opaque) };
    }
    Ok(families)
}

/// Every packet that may open a connection, on every interface.
pub(super) fn attempts_anywhere(
    witness: &PerCpuArray<impl std::borrow::Borrow<aya::maps::MapData>, Witness>,
) -> Result<u64, MapError> {
    Ok(witness.get(&0, 0)?.iter().map(|cpu| cpu.attempts).sum())
}

fn tally(values: &PerCpuValues<Counters>, class: Class) -> Tally {
    values.iter().filter_map(|cpu| cpu.classes.get(class as usize)).fold(Tally::default(), |sum, cpu| Tally {
        count: sum.count + cpu.count,
        last: sum.last.max((cpu.count > 0).then_some(Monotonic::from_nanos(cpu.last_ns))),
    })
}
