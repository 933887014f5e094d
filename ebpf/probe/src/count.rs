//! Counting what the predicate found.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use lastsyn_common::counters::{Class, UNATTRIBUTED_SLOT, counter_index, port_index};

use crate::maps::{COUNTERS, PORTS, WITNESS};

/// The slot of a watched port.
#[inline(always)]
pub(crate) fn slot(port: u16) -> Option<u8> {
    let (page, place) = port_index(port);
    let slot = PORTS.get(page)?.slot(place);
    if slot == UNATTRIBUTED_SLOT { None } else { Some(slot) }
}

/// Counts one packet in its slot, with the time. The program does not run twice at once on one CPU at this hook
/// (softirq), so plain additions lose nothing. Returns how many this CPU had counted there before.
#[inline(always)]
pub(crate) fn tally(slot: u8, v6: bool, class: Class) -> u64 {
    let Some(tally) = COUNTERS.get_ptr_mut(counter_index(slot, v6, class)) else {
        return u64::MAX; // never so: the index is within the map
    };
    // SAFETY: the map hands out a valid, aligned entry of this CPU, and nothing else refers to it here.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    let tally = unsafe { &mut *tally };
    let earlier = tally.count;
    tally.count = earlier + 1;
    // SAFETY: a helper without preconditions.
    #[expect(unsafe_code, reason = "helpers are foreign functions")]
    let now = unsafe { bpf_ktime_get_ns() };
    tally.last_ns = now;
    earlier
}

/// Adds to the witness's total.
#[inline(always)]
pub(crate) fn witness() {
    let Some(witness) = WITNESS.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: as in `tally`.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    unsafe {
        (*witness).attempts += 1;
    }
}
