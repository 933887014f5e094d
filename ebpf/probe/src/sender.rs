//! Who sent a SYN: the control group of its socket. A packet keeps its socket on the way from the node into the pod, and
//! loses it where it is forwarded (`ip_rcv` orphans it), so that only a process of this node's own network has one.

use aya_ebpf::{
    bindings::__sk_buff,
    helpers::generated::{bpf_skb_ancestor_cgroup_id, bpf_skb_cgroup_id},
    maps::LruHashMap,
};
use lastsyn_common::{
    counters::{Prober, Sender, names_one},
    packet::{Ipv4, Ipv6},
};

use crate::maps::{ASKERS_V4, ASKERS_V6, PROBERS};

/// The level right below the root.
const TOP: i32 = 1;

/// The id of the sender's control group; 0 for a sender elsewhere.
#[inline(always)]
pub(crate) fn group(packet: *mut __sk_buff) -> u64 {
    // SAFETY: the kernel passes a valid context.
    #[expect(unsafe_code, reason = "helpers are foreign functions")]
    unsafe {
        bpf_skb_cgroup_id(packet)
    }
}

/// Whether a SYN of this group to this port is kubelet's probe. Everything in doubt is not.
#[inline(always)]
pub(crate) fn probes(group: u64, port: u16) -> bool {
    let prober = Prober { group, port: u64::from(port) };
    names_one(group) && PROBERS.get_ptr(prober).is_some()
}

/// Remembers who asks at the agent's own port, over IPv4.
#[inline(always)]
pub(crate) fn asks_v4(packet: *mut __sk_buff, connection: Ipv4, group: u64) {
    asks(&ASKERS_V4, packet, &connection, group);
}

/// The same over IPv6.
#[inline(always)]
pub(crate) fn asks_v6(packet: *mut __sk_buff, connection: Ipv6, group: u64) {
    asks(&ASKERS_V6, packet, &connection, group);
}

/// A SYN from elsewhere makes what was known of an earlier connection with the same addresses and ports untrue.
#[inline(always)]
fn asks<K>(askers: &LruHashMap<K, Sender>, packet: *mut __sk_buff, connection: &K, group: u64) {
    // Neither can fail in a way that matters: what is not remembered teaches nothing, and what is not there need not go.
    if group == 0 {
        let _forgotten = askers.remove(connection);
        return;
    }
    // SAFETY: the kernel passes a valid context.
    #[expect(unsafe_code, reason = "helpers are foreign functions")]
    let top = unsafe { bpf_skb_ancestor_cgroup_id(packet, TOP) };
    let _remembered = askers.insert(connection, Sender { group, top }, 0);
}
