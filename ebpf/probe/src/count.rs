//! Counting what the predicate found.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    maps::{Array, lpm_trie::Key},
};
use lastsyn_common::counters::{Class, PortPage, UNATTRIBUTED_SLOT, counter_index, port_index};

use crate::maps::{COUNTERS, IGNORED_V4, IGNORED_V6, PORTS, PORTS_UDP, WITNESS};

/// The slot of a watched TCP port.
#[inline(always)]
pub(crate) fn slot(port: u16) -> Option<u8> {
    slot_in(&PORTS, port)
}

/// The slot of a watched UDP port.
#[inline(always)]
pub(crate) fn datagram_slot(port: u16) -> Option<u8> {
    slot_in(&PORTS_UDP, port)
}

#[inline(always)]
fn slot_in(ports: &Array<PortPage>, port: u16) -> Option<u8> {
    let (page, place) = port_index(port);
    let slot = ports.get(page)?.slot(place);
    if slot == UNATTRIBUTED_SLOT { None } else { Some(slot) }
}

/// Whether the operator wants SYNs of this IPv4 address ignored.
#[inline(always)]
pub(crate) fn ignores_v4(source: u32) -> bool {
    IGNORED_V4.get(Key::new(u32::BITS, source)).is_some()
}

/// The same for IPv6.
#[inline(always)]
pub(crate) fn ignores_v6(source: [u32; 4]) -> bool {
    IGNORED_V6.get(Key::new(u128::BITS, source)).is_some()
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
