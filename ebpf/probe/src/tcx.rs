//! TCX ingress: every frame that an interface of the namespace receives passes here, before netfilter and before the
//! listener, so also those that are refused, answered with a cookie, or dropped for want of room.

#![expect(clippy::needless_pass_by_value, reason = "the macro hands programs their context by value")]

use aya_ebpf::{
    bindings::{__sk_buff, tcx_action_base::TCX_NEXT},
    macros::classifier,
    programs::TcContext,
};
use aya_log_ebpf::debug;
use lastsyn_common::{
    counters::{Class, OWN_SLOT, SELF_TEST_SLOT, UNATTRIBUTED_SLOT, source_v4, source_v6},
    packet::{self, ETHERNET_HEADER, EtherType, Ipv4, Ipv6, Kind, Packet, Verdict},
};

use crate::{
    count, pace,
    reach::{Copied, Linear},
    sender, socket, sources,
};

/// `PACKET_HOST` in `linux/if_packet.h`: the frame is for this host, not overheard.
const PACKET_HOST: u32 = 0;

/// The VLAN number in a tag; 0 is a priority tag, which names no VLAN.
const VLAN_ID: u32 = 0x0fff;

/// Where a SYN goes.
#[derive(Clone, Copy)]
struct To {
    slot: u8,
    port: u16,
}

/// For every interface but the loopback.
#[classifier]
fn ingress(context: TcContext) -> i32 {
    if is_ours(&context) {
        // Two calls, not one with the family as an argument: where the paths of the families meet, the verifier refuses
        // the packet pointer to a loader without CAP_PERFMON.
        match packet::ether_type(&Linear::of(&context)) {
            EtherType::Ipv4 => {
                let verdict = ipv4(&context);
                if verdict.is_datagram() {
                    datagram_v4(&context, verdict);
                    return TCX_NEXT;
                }
                attempt(&context, false, verdict, |slot| class_v4(&context, verdict, slot));
            }
            EtherType::Ipv6 => {
                let verdict = ipv6(&context);
                if verdict.is_datagram() {
                    datagram_v6(&context, verdict);
                    return TCX_NEXT;
                }
                attempt(&context, true, verdict, |slot| class_v6(&context, verdict, slot));
            }
            EtherType::Other => {}
        }
    }
    TCX_NEXT
}

/// For the loopback: connections inside the pod never hold a drain, but they open connections that the namespace's
/// counters show, and so the witness must know them.
#[classifier]
fn loopback(context: TcContext) -> i32 {
    let verdict = match packet::ether_type(&Linear::of(&context)) {
        EtherType::Ipv4 => ipv4(&context),
        EtherType::Ipv6 => ipv6(&context),
        EtherType::Other => Verdict::OTHER,
    };
    if !verdict.is(Kind::Other) && !verdict.is(Kind::Short) && !verdict.is_datagram() {
        count::witness();
    }
    TCX_NEXT
}

#[inline(always)]
fn attempt(context: &TcContext, v6: bool, verdict: Verdict, class: impl FnOnce(u8) -> Option<Class>) {
    if verdict.is(Kind::Other) || verdict.is(Kind::Short) {
        return;
    }
    count::witness();
    if verdict.is(Kind::Opaque) {
        opaque(context, UNATTRIBUTED_SLOT, v6);
    } else if let Some(slot) = count::slot(verdict.port()) {
        if verdict.is(Kind::OpaquePort) {
            opaque(context, slot, v6);
        } else if let Some(class) = class(slot)
            && count::tally(slot, v6, class) == 0
            && slot == SELF_TEST_SLOT
        {
            debug!(context, "the first self-test passed through the program");
        }
    }
}

/// Counts a datagram over IPv4 that opens a QUIC connection, or may. There are few, so that the helper may read all of it.
#[inline(always)]
fn datagram_v4(context: &TcContext, verdict: Verdict) {
    let Some(slot) = count::datagram_slot(verdict.port()) else { return };
    let packet = Packet { near: &Linear::of(context), far: &Copied(context.skb.skb) };
    let tuple = Ipv4::read(packet.far, ETHERNET_HEADER, packet.tcp_behind_ipv4(ETHERNET_HEADER));
    if count::ignores_v4(tuple.source) {
        count::tally(slot, false, Class::Ignored);
    } else {
        let takes = || socket::takes_datagram_v4(context.skb.skb, tuple);
        let class = datagram_class(verdict, takes);
        count::tally(slot, false, class);
        sources::keep_v4(slot, tuple.source, class);
    }
}

/// The same over IPv6.
#[inline(always)]
fn datagram_v6(context: &TcContext, verdict: Verdict) {
    let Some(slot) = count::datagram_slot(verdict.port()) else { return };
    let packet = Packet { near: &Linear::of(context), far: &Copied(context.skb.skb) };
    let tuple = Ipv6::read(packet.far, ETHERNET_HEADER, packet.tcp_behind_ipv6(ETHERNET_HEADER));
    if count::ignores_v6(tuple.source) {
        count::tally(slot, true, Class::Ignored);
    } else {
        let takes = || socket::takes_datagram_v6(context.skb.skb, tuple);
        let class = datagram_class(verdict, takes);
        count::tally(slot, true, class);
        sources::keep_v6(slot, tuple.source, class);
    }
}

#[inline(always)]
fn datagram_class(verdict: Verdict, takes: impl FnOnce() -> bool) -> Class {
    if verdict.is(Kind::OpaqueDatagram) {
        Class::Opaque
    } else if takes() {
        Class::New
    } else {
        Class::Refused
    }
}

/// The class of a SYN over IPv4; `None` for one that is not counted here. The fields of most lie at fixed places; with IP
/// options the helper reads them.
#[inline(always)]
fn class_v4(context: &TcContext, verdict: Verdict, slot: u8) -> Option<Class> {
    let to = To { slot, port: verdict.port() };
    if verdict.is(Kind::Syn) {
        let tcp = Ipv4::TCP_WITHOUT_OPTIONS;
        let tuple = Ipv4::read(&Linear::of(context), ETHERNET_HEADER, tcp);
        class_of_v4(context, tuple, to, tcp, true)
    } else {
        let packet = Packet { near: &Linear::of(context), far: &Copied(context.skb.skb) };
        let tcp = packet.tcp_behind_ipv4(ETHERNET_HEADER);
        class_of_v4(context, Ipv4::read(packet.far, ETHERNET_HEADER, tcp), to, tcp, false)
    }
}

/// The same over IPv6.
#[inline(always)]
fn class_v6(context: &TcContext, verdict: Verdict, slot: u8) -> Option<Class> {
    let to = To { slot, port: verdict.port() };
    if verdict.is(Kind::Syn) {
        let tcp = Ipv6::TCP_WITHOUT_EXTENSIONS;
        let tuple = Ipv6::read(&Linear::of(context), ETHERNET_HEADER, tcp);
        class_of_v6(context, tuple, to, tcp, true)
    } else {
        let packet = Packet { near: &Linear::of(context), far: &Copied(context.skb.skb) };
        let tcp = packet.tcp_behind_ipv6(ETHERNET_HEADER);
        class_of_v6(context, Ipv6::read(packet.far, ETHERNET_HEADER, tcp), to, tcp, false)
    }
}

#[inline(always)]
fn class_of_v4(context: &TcContext, tuple: Ipv4, to: To, tcp: usize, fixed: bool) -> Option<Class> {
    let sender = sender::group(context.skb.skb);
    // The self-test is sent in the agent's own name (`bpf_prog_test_run_skb`): by it the agent learns where pods are.
    if to.slot == OWN_SLOT || to.slot == SELF_TEST_SLOT {
        sender::asks_v4(context.skb.skb, tuple, sender);
    }
    if to.slot == OWN_SLOT {
        return None;
    }
    if count::ignores_v4(tuple.source) {
        return Some(Class::Ignored);
    }
    if sender::probes(sender, to.port) {
        return Some(Class::Probe);
    }
    if let Some(list) = pace::list(context.skb.skb, sender, to.port, false)
        && pace::mark(list, source_v4(tuple.source))
    {
        return None;
    }
    let class = class(context, socket::state_v4(context.skb.skb, tuple), tcp, fixed);
    sources::keep_v4(to.slot, tuple.source, class);
    Some(class)
}

#[inline(always)]
fn class_of_v6(context: &TcContext, tuple: Ipv6, to: To, tcp: usize, fixed: bool) -> Option<Class> {
    let sender = sender::group(context.skb.skb);
    if to.slot == OWN_SLOT {
        sender::asks_v6(context.skb.skb, tuple, sender);
        return None;
    }
    if count::ignores_v6(tuple.source) {
        return Some(Class::Ignored);
    }
    if sender::probes(sender, to.port) {
        return Some(Class::Probe);
    }
    if let Some(list) = pace::list(context.skb.skb, sender, to.port, true)
        && pace::mark(list, source_v6(tuple.source))
    {
        return None;
    }
    let class = class(context, socket::state_v6(context.skb.skb, tuple), tcp, fixed);
    sources::keep_v6(to.slot, tuple.source, class);
    Some(class)
}

#[inline(always)]
fn class(context: &TcContext, state: u32, tcp: usize, fixed: bool) -> Class {
    let class = lastsyn_common::socket::class(state);
    let packet = Packet { near: &Linear::of(context), far: &Copied(context.skb.skb) };
    if class == Class::New && packet::joins(&packet, tcp, fixed) { Class::Join } else { class }
}

#[inline(always)]
fn opaque(context: &TcContext, slot: u8, v6: bool) {
    if count::tally(slot, v6, Class::Opaque) == 0 {
        debug!(context, "first packet that could not be parsed as far as its TCP flags; it counts as an attempt");
    }
}

#[inline(always)]
fn ipv4(context: &TcContext) -> Verdict {
    let read = |near| Packet { near: &near, far: &Copied(context.skb.skb) }.ipv4(ETHERNET_HEADER);
    or_pulled(context, read(Linear::of(context)), read)
}

#[inline(always)]
fn ipv6(context: &TcContext) -> Verdict {
    let read = |near| Packet { near: &near, far: &Copied(context.skb.skb) }.ipv6(ETHERNET_HEADER);
    or_pulled(context, read(Linear::of(context)), read)
}

/// Reads again where the headers did not lie in one piece. A packet that is still too short ends there, and the kernel
/// drops it.
#[inline(always)]
fn or_pulled(context: &TcContext, verdict: Verdict, read: impl FnOnce(Linear) -> Verdict) -> Verdict {
    if verdict.is(Kind::Short) { Linear::pull(context).map_or(Verdict::OTHER, read) } else { verdict }
}

/// Whether the frame is for this host and this interface. A frame with a VLAN tag comes again on the VLAN's own
/// interface, and would count twice.
#[inline(always)]
fn is_ours(context: &TcContext) -> bool {
    let skb: *const __sk_buff = context.skb.skb;
    // SAFETY: the kernel passes a valid context; these fields are part of its stable interface.
    #[expect(unsafe_code, reason = "the context's fields are reached by pointer")]
    let (packet_type, vlan_present, vlan_tci) = unsafe { ((*skb).pkt_type, (*skb).vlan_present, (*skb).vlan_tci) };
    packet_type == PACKET_HOST && (vlan_present == 0 || vlan_tci & VLAN_ID == 0)
}
