//! Who sends the SYNs that count, kept only while the agent wants it: an update costs more than all the rest of the program.

use aya_ebpf::{bindings::BPF_NOEXIST, helpers::bpf_ktime_get_ns};
use lastsyn_common::{
    counters::{Class, FIRST_PORT_SLOT},
    sources::{Knocks, Source, is_kept, joined, listener, opens},
};

use crate::maps::{SOURCES, SOURCES_ADDED, SOURCES_WANTED, WHOLE};

/// Keeps the source of a SYN over IPv4.
#[inline(always)]
pub(crate) fn keep_v4(slot: u8, source: u32, class: Class) {
    if wanted() && slot >= FIRST_PORT_SLOT && is_kept(class) {
        keep(Source { network: joined(source, 0), host: 0, listener: listener(slot, false) }, class);
    }
}

/// The same over IPv6.
#[inline(always)]
pub(crate) fn keep_v6(slot: u8, source: [u32; 4], class: Class) {
    if wanted() && slot >= FIRST_PORT_SLOT && is_kept(class) {
        let host = if WHOLE.get_ptr(source).is_some() { joined(source[2], source[3]) } else { 0 };
        keep(Source { network: joined(source[0], source[1]), host, listener: listener(slot, true) }, class);
    }
}

/// Whether the agent wants sources kept. Without a call: the kernel writes out the lookup in such a map (`map_gen_lookup`).
#[inline(always)]
fn wanted() -> bool {
    let Some(wanted) = SOURCES_WANTED.get_ptr(0) else { return false };
    // SAFETY: the map hands out a valid, aligned entry, which is written whole.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    let wanted = unsafe { *wanted };
    wanted != 0
}

#[inline(always)]
fn keep(source: Source, class: Class) {
    // SAFETY: a helper without preconditions.
    #[expect(unsafe_code, reason = "helpers are foreign functions")]
    let now = unsafe { bpf_ktime_get_ns() };
    if add(source, class, now) {
        return;
    }
    let first = Knocks { count: 1, last_ns: now, opened_ns: if opens(class) { now } else { 0 } };
    if SOURCES.insert(source, first, BPF_NOEXIST.into()).is_err() {
        // Another CPU was first; or there is no room, which the agent finds by the counts.
        add(source, class, now);
        return;
    }
    if let Some(added) = SOURCES_ADDED.get_ptr_mut(0) {
        // SAFETY: the map hands out a valid, aligned entry of this CPU, and nothing else refers to it here.
        #[expect(unsafe_code, reason = "map values are reached by pointer")]
        unsafe {
            *added += 1;
        }
    }
}

/// Adds to a source that is kept; `false` if it is not.
#[inline(always)]
fn add(source: Source, class: Class, now: u64) -> bool {
    let Some(knocks) = SOURCES.get_ptr_mut(source) else { return false };
    // SAFETY: the map hands out a valid, aligned entry of this CPU, and nothing else refers to it here. Should it have given
    // way to another source just now, that one has a SYN too many.
    #[expect(unsafe_code, reason = "map values are reached by pointer")]
    let knocks = unsafe { &mut *knocks };
    knocks.count += 1;
    knocks.last_ns = now;
    if opens(class) {
        knocks.opened_ns = now;
    }
    true
}
