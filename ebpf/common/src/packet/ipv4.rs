//! The IPv4 header (RFC 791 section 3.1).

use super::{
    Bytes, Field, Packet, Verdict,
    tcp::{self, Missing},
};

const OFFSET_OF_FRAGMENT: usize = 6;
const OFFSET_OF_PROTOCOL: usize = 9;
const PROTOCOL_TCP: Field = Field::of(6);
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// In 32-bit words; also the shortest valid one.
const WORDS_WITHOUT_OPTIONS: u16 = 5;
const HEADER_WITHOUT_OPTIONS: usize = 20;

#[inline(always)]
pub(super) fn verdict<N, F>(packet: &Packet<'_, N, F>, offset: usize) -> Verdict
where
    N: Bytes + ?Sized,
    F: Bytes + ?Sized,
{
    let near = packet.near;
    let protocol = near.u8(offset + OFFSET_OF_PROTOCOL);
    if protocol.is_absent() {
        return Verdict::SHORT; // it is the last of the fields that are read here
    }
    if protocol != PROTOCOL_TCP {
        return Verdict::OTHER;
    }
    let fragment = near.u16(offset + OFFSET_OF_FRAGMENT).value();
    if fragment & FRAGMENT_OFFSET != 0 {
        return Verdict::OTHER;
    }
    let words = near.u8(offset).value() & 0x0f;
    if words < WORDS_WITHOUT_OPTIONS {
        return Verdict::OTHER; // the kernel drops it (`ip_rcv_core`)
    }
    let whole = fragment & MORE_FRAGMENTS == 0;
    if words == WORDS_WITHOUT_OPTIONS && whole {
        return tcp::verdict(near, offset + HEADER_WITHOUT_OPTIONS, Missing::Near);
    }
    let missing = if whole { Missing::Malformed } else { Missing::InLaterFragment };
    tcp::verdict(packet.far, offset + usize::from(words) * 4, missing)
}
