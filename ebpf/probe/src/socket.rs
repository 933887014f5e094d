//! Asking the kernel which socket a SYN meets: the same lookup that the kernel makes when the SYN gets there
//! (`__inet_lookup_established`, then `__inet_lookup_listener`).

use aya_ebpf::{
    bindings::__sk_buff,
    helpers::generated::{bpf_sk_lookup_udp, bpf_sk_release, bpf_skc_lookup_tcp},
};
use lastsyn_common::{
    packet::{Ipv4, Ipv6},
    socket::NONE,
};

/// `BPF_F_CURRENT_NETNS` in `linux/bpf.h`: the namespace of the interface.
const NAMESPACE_OF_INTERFACE: u64 = u64::MAX;

/// The state of the socket that a segment over IPv4 meets.
#[inline(always)]
pub(crate) fn state_v4(packet: *mut __sk_buff, mut tuple: Ipv4) -> u32 {
    state(packet, &raw mut tuple)
}

/// The state of the socket that a segment over IPv6 meets.
#[inline(always)]
pub(crate) fn state_v6(packet: *mut __sk_buff, mut tuple: Ipv6) -> u32 {
    state(packet, &raw mut tuple)
}

/// Both tuples lie in memory as `bpf_sock_tuple` does; the kernel tells the family by the size.
#[inline(always)]
fn state<T>(packet: *mut __sk_buff, tuple: *mut T) -> u32 {
    // SAFETY: the kernel passes a valid context, and the tuple has the size that is given. The socket that comes back, if
    // any, is released on the only way on from here, and not used after that.
    #[expect(unsafe_code, reason = "helpers are foreign functions, and a socket's fields are reached by pointer")]
    #[expect(clippy::cast_possible_truncation, reason = "12 or 36 bytes")]
    unsafe {
        let size = size_of::<T>() as u32;
        let socket = bpf_skc_lookup_tcp(packet.cast(), tuple.cast(), size, NAMESPACE_OF_INTERFACE, 0);
        if socket.is_null() {
            return NONE;
        }
        let state = (*socket).state;
        bpf_sk_release(socket.cast());
        state
    }
}

/// Whether there is a socket for a datagram over IPv4.
#[inline(always)]
pub(crate) fn takes_datagram_v4(packet: *mut __sk_buff, mut tuple: Ipv4) -> bool {
    takes_datagram(packet, &raw mut tuple)
}

/// The same over IPv6.
#[inline(always)]
pub(crate) fn takes_datagram_v6(packet: *mut __sk_buff, mut tuple: Ipv6) -> bool {
    takes_datagram(packet, &raw mut tuple)
}

#[inline(always)]
fn takes_datagram<T>(packet: *mut __sk_buff, tuple: *mut T) -> bool {
    // SAFETY: as in `state`.
    #[expect(unsafe_code, reason = "helpers are foreign functions")]
    #[expect(clippy::cast_possible_truncation, reason = "12 or 36 bytes")]
    unsafe {
        let size = size_of::<T>() as u32;
        let socket = bpf_sk_lookup_udp(packet.cast(), tuple.cast(), size, NAMESPACE_OF_INTERFACE, 0);
        if socket.is_null() {
            return false;
        }
        bpf_sk_release(socket.cast());
        true
    }
}
