//! The TCP header, as far as needed (RFC 9293 section 3.1).

use super::{Bytes, Verdict};

/// FIN, SYN, RST and ACK. ECE and CWR are left out: a SYN that asks for ECN carries both (RFC 3168 section 6.1.1).
pub const FLAGS_MASK: u16 = 0x17;

/// A SYN is the only one of [`FLAGS_MASK`] that is set. SYN with FIN or RST is dropped by the kernel
/// (`tcp_rcv_state_process`), SYN with ACK answers a connection that the pod opened.
pub const SYN: u16 = 0x02;

const OFFSET_OF_DESTINATION: usize = 2;
const OFFSET_OF_FLAGS: usize = 13;

/// Why bytes can be missing, which decides what the packet then is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Only the part that can be read directly has ended.
    Near,
    /// The packet has ended: the kernel drops it (`tcp_v4_rcv`, `tcp_v6_rcv`).
    Malformed,
    /// The packet is a first fragment: they are in a later one.
    InLaterFragment,
}

impl Missing {
    #[inline(always)]
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Near => Verdict::SHORT,
            Self::Malformed => Verdict::OTHER,
            Self::InLaterFragment => Verdict::OPAQUE,
        }
    }
}

#[inline(always)]
pub(super) fn verdict<B: Bytes + ?Sized>(bytes: &B, offset: usize, missing: Missing) -> Verdict {
    // The flags come first: nearly every packet that gets here is data, and leaves after one read.
    let flags = bytes.u8(offset + OFFSET_OF_FLAGS);
    if flags.is_absent() {
        if let Missing::InLaterFragment = missing {
            let port = bytes.u16(offset + OFFSET_OF_DESTINATION);
            return if port.is_absent() { Verdict::OPAQUE } else { Verdict::opaque_port(port.value()) };
        }
        return missing.verdict();
    }
    if flags.value() & FLAGS_MASK != SYN {
        return Verdict::OTHER;
    }
    let port = bytes.u16(offset + OFFSET_OF_DESTINATION);
    if port.is_absent() {
        missing.verdict()
    } else if let Missing::Near = missing {
        Verdict::syn(port.value())
    } else {
        Verdict::syn_behind(port.value())
    }
}
