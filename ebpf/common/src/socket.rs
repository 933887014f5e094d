//! What the socket that a SYN meets makes of it.

use crate::counters::Class;

/// No socket. The kernel numbers states from 1.
pub const NONE: u32 = 0;

/// The states of a TCP socket (`include/net/tcp_states.h`, part of the programs' stable interface as `BPF_TCP_…`).
const SYN_RECV: u32 = 3;
const TIME_WAIT: u32 = 6;
const LISTEN: u32 = 10;
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

#[cfg(test)]
mod tests {
    use super::*;

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
