//! What the socket that a SYN meets makes of it.

use crate::counters::Class;

/// No socket. The kernel numbers states from 1.
pub const NONE: u32 = 0;

/// The states of a TCP socket (`include/net/tcp_states.h`, part of the programs' stable interface as `BPF_TCP_…`).
const SYN_RECV: u32 = 3;
const TIME_WAIT: u32 = 6;
/// A socket that takes connections.
pub const LISTEN: u32 = 10;
const NEW_SYN_RECV: u32 = 12;

/// The class of a SYN by the state of the socket that it meets.
#[inline(always)]
pub const fn class(state: u32) -> Class {
    match state {
        NONE => Class::Refused,
        // A connection that has ended may be opened anew by the same client (`tcp_timewait_state_process`).
        LISTEN | TIME_WAIT => Class::New,
        // The second is a connection that TCP Fast Open has begun: it has a socket before its handshake is complete.
        NEW_SYN_RECV | SYN_RECV => Class::Retransmit,
        _ => Class::Stray,
    }
}

/// Whether an IPv4 address, in network order, is one of the machine's own that no other can reach (127.0.0.0/8).
#[inline(always)]
pub const fn is_loopback_v4(address: u32) -> bool {
    u32::from_be(address) >> 24 == 127
}

/// The same for IPv6 (`::1`).
#[inline(always)]
pub const fn is_loopback_v6(address: [u32; 4]) -> bool {
    address[0] | address[1] | address[2] == 0 && u32::from_be(address[3]) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_loopback_addresses() {
        use core::net::{Ipv4Addr, Ipv6Addr};
        let v4 = |text: &str| is_loopback_v4(u32::from_ne_bytes(text.parse::<Ipv4Addr>().unwrap().octets()));
        assert!(v4("127.0.0.1") && v4("127.255.0.9"));
        assert!(!v4("128.0.0.127") && !v4("10.0.0.127") && !v4("0.0.0.0"));
        let v6 = |text: &str| {
            let octets = text.parse::<Ipv6Addr>().unwrap().octets();
            is_loopback_v6(core::array::from_fn(|word| {
                u32::from_ne_bytes(core::array::from_fn(|byte| octets[word * 4 + byte]))
            }))
        };
        assert!(v6("::1"));
        assert!(!v6("::") && !v6("::2") && !v6("fd00::1") && !v6("::1:0:0:1"));
    }

    #[test]
    fn every_state_has_its_class() {
        let named = |state: u32| match state {
            0 => Class::Refused,
            6 | 10 => Class::New,
            3 | 12 => Class::Retransmit,
            _ => Class::Stray,
        };
        for state in 0..=20 {
            assert_eq!(class(state), named(state), "state {state}");
        }
    }
}
