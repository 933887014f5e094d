//! The TCP header, as far as needed (RFC 9293 section 3.1).

use super::{Bytes, Verdict};

/// FIN, SYN, RST and ACK. ECE and CWR are left out: a SYN that asks for ECN carries both (RFC 3168 section 6.1.1).
pub const FLAGS_MASK: u8 = 0x17;

/// A SYN is the only one of [`FLAGS_MASK`] that is set. SYN with FIN or RST is dropped by the kernel
/// (`tcp_rcv_state_process`), SYN with ACK answers a connection that the pod opened.
pub const SYN: u8 = 0x02;

const OFFSET_OF_DESTINATION: usize = 2;
const OFFSET_OF_FLAGS: usize = 13;

/// Whether bytes are missing because the packet was cut in IP fragments: then they are not to be had.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// The packet is not a fragment.
    Yes,
    /// The packet is a first fragment.
    FirstFragment,
}

#[inline(always)]
pub(super) fn verdict<B: Bytes + ?Sized>(bytes: &B, offset: usize, whole: Whole) -> Verdict {
    // The flags come first: nearly every packet that gets here is data, and leaves after one read.
    let Some(flags) = bytes.u8(offset + OFFSET_OF_FLAGS) else {
        return match (whole, bytes.u16(offset + OFFSET_OF_DESTINATION)) {
            (Whole::Yes, _) => Verdict::Short,
            (Whole::FirstFragment, Some(port)) => Verdict::OpaquePort(port),
            (Whole::FirstFragment, None) => Verdict::Opaque,
        };
    };
    if flags & FLAGS_MASK != SYN {
        return Verdict::Other;
    }
    match bytes.u16(offset + OFFSET_OF_DESTINATION) {
        Some(port) => Verdict::Syn(port),
        None => Verdict::Short,
    }
}
