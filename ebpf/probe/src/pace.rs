//! SYNs that may be kubelet's probes, at ports where nothing tells who sent them: they are not counted here but written
//! down, with their times, for the agent to tell by their pace.

use aya_ebpf::{bindings::__sk_buff, helpers::bpf_ktime_get_ns};
use lastsyn_common::{
    counters::{Mark, NOBODY, Prober, mark_index, mark_list, names_one},
    packet::{Bytes, ETHERNET_HEADER, Field},
};

use crate::{
    maps::{MARK_COUNTS, MARKS, PROBERS},
    reach::Copied,
};

/// What Linux sends with (`IPDEFTTL` in `linux/ip.h`, `IPV6_DEFAULT_HOPLIMIT`). A packet that was forwarded has less.
const UNDIMINISHED: Field = Field::of(64);
const OFFSET_OF_TTL: usize = ETHERNET_HEADER + 8;
const OFFSET_OF_HOP_LIMIT: usize = ETHERNET_HEADER + 7;

/// The list for a SYN of this group to this port, where it may be a probe: nobody knows the sender, and the packet was not
/// forwarded.
#[inline(always)]
pub(crate) fn list(packet: *mut __sk_buff, group: u64, port: u16, v6: bool) -> Option<u32> {
    if names_one(group) {
        return None;
    }
    let prober = Prober { group: NOBODY, port: u64::from(port) };
    let number = PROBERS.get_ptr(prober)?;
    // SAFETY: the map hands out a valid entry, which is written whole.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    let number = unsafe { *number };
    let hops = Copied(packet).u8(if v6 { OFFSET_OF_HOP_LIMIT } else { OFFSET_OF_TTL });
    if hops == UNDIMINISHED { Some(mark_list(number, v6)) } else { None }
}

/// Writes one down; `false` if it cannot be, and is to be counted.
#[inline(always)]
pub(crate) fn mark(list: u32, source: u64) -> bool {
    let Some(count) = MARK_COUNTS.get_ptr_mut(list) else { return false };
    // SAFETY: the map hands out a valid, aligned entry of this CPU, and nothing else refers to it here.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    let number = unsafe { *count };
    let Some(mark) = MARKS.get_ptr_mut(mark_index(list, number)) else { return false };
    // SAFETY: as above; the helper has no preconditions. The mark is there before it is counted.
    #[expect(unsafe_code, reason = "map values are reached by pointer, and helpers are foreign functions")]
    unsafe {
        *mark = Mark { at_ns: bpf_ktime_get_ns(), source };
        count.write_volatile(number + 1);
    }
    true
}
