//! The maps. All of fixed size: nothing that a sender does makes them grow or forget.

use aya_ebpf::{
    macros::map,
    maps::{Array, LpmTrie, PerCpuArray},
};
use lastsyn_common::counters::{self, MOST_IGNORED, PORT_PAGES, PortPage, Tally, Witness};

/// Port to slot. Written by the agent, also while the programs run.
#[map]
pub(crate) static PORTS: Array<PortPage> = Array::with_max_entries(PORT_PAGES, 0);

/// The counts per slot, family and class. Per CPU, so that no update can be lost to another.
#[map]
pub(crate) static COUNTERS: PerCpuArray<Tally> = PerCpuArray::with_max_entries(counters::COUNTERS, 0);

/// The witness's total: one entry.
#[map]
pub(crate) static WITNESS: PerCpuArray<Witness> = PerCpuArray::with_max_entries(1, 0);

/// The IPv4 networks whose SYNs are ignored: addresses in network order, and nothing of interest as values. Written by the
/// agent before the programs run.
#[map]
pub(crate) static IGNORED_V4: LpmTrie<u32, u8> = LpmTrie::with_max_entries(MOST_IGNORED, 0);

/// The same for IPv6.
#[map]
pub(crate) static IGNORED_V6: LpmTrie<[u32; 4], u8> = LpmTrie::with_max_entries(MOST_IGNORED, 0);
