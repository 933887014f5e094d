//! The maps. All of fixed size: nothing that a sender does makes them grow, or makes a count go; but who asked the agent long
//! ago can be forgotten, as other processes of this node ask, and who sent SYNs long ago, as others do.

use aya_ebpf::{
    bindings::BPF_F_NO_PREALLOC,
    macros::map,
    maps::{Array, HashMap, LpmTrie, LruHashMap, LruPerCpuHashMap, PerCpuArray},
};
use lastsyn_common::{
    counters::{
        self, ASKERS, MARK_LISTS, MARKS_KEPT, MOST_IGNORED, MOST_PACED, MOST_PROBERS, Mark, PORT_PAGES, PortPage,
        Prober, Sender, Tally, Witness,
    },
    packet::{Ipv4, Ipv6},
    sources::{Knocks, MOST_SOURCES, MOST_WHOLE, Source},
};

/// TCP port to slot. Written by the agent, also while the programs run.
#[map]
pub(crate) static PORTS: Array<PortPage> = Array::with_max_entries(PORT_PAGES, 0);

/// The same for UDP ports.
#[map]
pub(crate) static PORTS_UDP: Array<PortPage> = Array::with_max_entries(PORT_PAGES, 0);

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

/// Kubelet's control groups, each with each port that it probes; and with the group [`counters::NOBODY`] each port that is
/// told by the pace of its probes, with its number. Written by the agent, also while the programs run.
#[map]
pub(crate) static PROBERS: HashMap<Prober, u8> = HashMap::with_max_entries(MOST_PROBERS + MOST_PACED, 0);

/// How many marks each list has got.
#[map]
pub(crate) static MARK_COUNTS: PerCpuArray<u64> = PerCpuArray::with_max_entries(MARK_LISTS, 0);

/// The newest marks of each list.
#[map]
pub(crate) static MARKS: PerCpuArray<Mark> = PerCpuArray::with_max_entries(MARK_LISTS * MARKS_KEPT, 0);

/// Whence the last SYN of each connection over IPv4 to the agent's own port came, if a process of this node sent it.
#[map]
pub(crate) static ASKERS_V4: LruHashMap<Ipv4, Sender> = LruHashMap::with_max_entries(ASKERS, 0);

/// The same over IPv6.
#[map]
pub(crate) static ASKERS_V6: LruHashMap<Ipv6, Sender> = LruHashMap::with_max_entries(ASKERS, 0);

/// Not 0 while sources are to be kept: one entry. Written by the agent, also while the programs run.
#[map]
pub(crate) static SOURCES_WANTED: Array<u64> = Array::with_max_entries(1, 0);

/// What came from whom, per CPU. Those from which nothing has come for long give way to new ones.
#[map]
pub(crate) static SOURCES: LruPerCpuHashMap<Source, Knocks> = LruPerCpuHashMap::with_max_entries(MOST_SOURCES, 0);

/// How many sources have been taken into that map: one entry. By how many of them are still there the agent knows how many
/// gave way.
#[map]
pub(crate) static SOURCES_ADDED: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);

/// The IPv6 addresses that are sources of their own, and nothing of interest as values. Written by the agent, also while the
/// programs run; it takes up only what is in it.
#[map]
pub(crate) static WHOLE: HashMap<[u32; 4], u8> = HashMap::with_max_entries(MOST_WHOLE, BPF_F_NO_PREALLOC);
