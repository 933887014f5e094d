//! The maps. All of fixed size: nothing that a sender does makes them grow or forget.

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray},
};
use lastsyn_common::counters::{self, PORT_PAGES, PortPage, Tally, Witness};

/// Port to slot. Written by the agent, also while the programs run.
#[map]
pub(crate) static PORTS: Array<PortPage> = Array::with_max_entries(PORT_PAGES, 0);

/// The counts per slot, family and class. Per CPU, so that no update can be lost to another.
#[map]
pub(crate) static COUNTERS: PerCpuArray<Tally> = PerCpuArray::with_max_entries(counters::COUNTERS, 0);

/// The witness's total: one entry.
#[map]
pub(crate) static WITNESS: PerCpuArray<Witness> = PerCpuArray::with_max_entries(1, 0);
