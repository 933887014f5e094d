//! Ingress of a control group: every packet that has met a socket of one of its processes passes here, after
//! defragmentation, address translation and checksums, and before the socket has it. What meets no socket does not.

#![expect(clippy::needless_pass_by_value, reason = "the macro hands programs their context by value")]

use aya_ebpf::{bindings::__sk_buff, macros::cgroup_skb, programs::SkBuffContext};
use lastsyn_common::{
    counters::{Class, SELF_TEST_SLOT, UNATTRIBUTED_SLOT},
    packet::{self, Ipv4, Ipv6, Kind, Packet},
    socket::{LISTEN, is_loopback_v4, is_loopback_v6},
};

use crate::{count, reach::Copied, socket, sources};

/// The packet goes on to its socket.
const PASS: i32 = 1;
/// Here a packet begins with its IP header.
const IP: usize = 0;
/// `ETH_P_IP` and `ETH_P_IPV6` in `linux/if_ether.h`, in network order.
const IPV4: u32 = 0x0800_u16.to_be() as u32;
const IPV6: u32 = 0x86dd_u16.to_be() as u32;

/// For the pod's control group.
#[cgroup_skb(ingress)]
fn cgroup(context: SkBuffContext) -> i32 {
    let skb = context.skb.skb;
    // Data belongs to connections, and goes on after two reads.
    if meets_listener(skb) {
        // SAFETY: the kernel passes a valid context; the field is part of its stable interface.
        #[expect(unsafe_code, reason = "the context's fields are reached by pointer")]
        let protocol = unsafe { (*skb).protocol };
        if protocol == IPV4 {
            ipv4(skb);
        } else if protocol == IPV6 {
            ipv6(skb);
        }
    }
    PASS
}

#[inline(always)]
fn ipv4(skb: *mut __sk_buff) {
    let packet = Packet { near: &Copied(skb), far: &Copied(skb) };
    let verdict = packet.ipv4(IP);
    if verdict.is(Kind::Opaque) || verdict.is(Kind::OpaquePort) {
        count::tally(UNATTRIBUTED_SLOT, false, Class::Opaque);
        return;
    }
    if !verdict.is(Kind::Syn) && !verdict.is(Kind::SynBehind) {
        return;
    }
    let Some(slot) = count::slot(verdict.port()) else { return };
    let tcp = packet.tcp_behind_ipv4(IP);
    let tuple = Ipv4::read(packet.far, IP, tcp);
    if is_loopback_v4(tuple.destination) && slot != SELF_TEST_SLOT {
        return;
    }
    let class =
        if count::ignores_v4(tuple.source) { Class::Ignored } else { class(skb, socket::state_v4(skb, tuple), tcp) };
    count::tally(slot, false, class);
    sources::keep_v4(slot, tuple.source, class);
}

#[inline(always)]
fn ipv6(skb: *mut __sk_buff) {
    let packet = Packet { near: &Copied(skb), far: &Copied(skb) };
    let verdict = packet.ipv6(IP);
    if verdict.is(Kind::Opaque) || verdict.is(Kind::OpaquePort) {
        count::tally(UNATTRIBUTED_SLOT, true, Class::Opaque);
        return;
    }
    if !verdict.is(Kind::Syn) && !verdict.is(Kind::SynBehind) {
        return;
    }
    let Some(slot) = count::slot(verdict.port()) else { return };
    let tcp = packet.tcp_behind_ipv6(IP);
    let tuple = Ipv6::read(packet.far, IP, tcp);
    if is_loopback_v6(tuple.destination) {
        return;
    }
    let class =
        if count::ignores_v6(tuple.source) { Class::Ignored } else { class(skb, socket::state_v6(skb, tuple), tcp) };
    count::tally(slot, true, class);
    sources::keep_v6(slot, tuple.source, class);
}

/// The packet has met a listener: where the lookup finds neither it nor a handshake under way, it is new nevertheless.
#[inline(always)]
fn class(skb: *mut __sk_buff, state: u32, tcp: usize) -> Class {
    let packet = Packet { near: &Copied(skb), far: &Copied(skb) };
    match lastsyn_common::socket::class(state) {
        Class::Retransmit => Class::Retransmit,
        _ if packet::joins(&packet, tcp, false) => Class::Join,
        _ => Class::New,
    }
}

/// Whether the socket that the packet has met listens.
#[inline(always)]
fn meets_listener(skb: *mut __sk_buff) -> bool {
    // SAFETY: the kernel passes a valid context, and a socket that lives as long as the program runs, or none.
    #[expect(unsafe_code, reason = "the context's fields are reached by pointer")]
    unsafe {
        let socket = (*skb).__bindgen_anon_2.sk;
        !socket.is_null() && (*socket).state == LISTEN
    }
}
