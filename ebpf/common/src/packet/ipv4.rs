//! The IPv4 header (RFC 791 section 3.1).

use super::{
    Bytes, Packet, Verdict,
    tcp::{self, Missing},
};

const OFFSET_OF_FRAGMENT: usize = 6;
const OFFSET_OF_PROTOCOL: usize = 9;
const PROTOCOL_TCP: u8 = 6;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// In 32-bit words; also the shortest valid one.
const WORDS_WITHOUT_OPTIONS: u8 = 5;
const HEADER_WITHOUT_OPTIONS: usize = 20;

#[inline(always)]
pub(super) fn verdict<N, F>(packet: &Packet<'_, N, F>, offset: usize) -> Verdict
where
    N: Bytes + ?Sized,
    F: Bytes + ?Sized,
{
    let near = packet.near;
    let (Some(protocol), Some(fragment), Some(version_and_length)) =
        (near.u8(offset + OFFSET_OF_PROTOCOL), near.u16(offset + OFFSET_OF_FRAGMENT), near.u8(offset))
    else {
        return Verdict::Short;
    };
    if protocol != PROTOCOL_TCP || fragment & FRAGMENT_OFFSET != 0 {
        return Verdict::Other;
    }
    let words = version_and_length & 0x0f;
    if words < WORDS_WITHOUT_OPTIONS {
        return Verdict::Other; // the kernel drops it (`ip_rcv_core`)
    }
    let whole = fragment & MORE_FRAGMENTS == 0;
    if words == WORDS_WITHOUT_OPTIONS && whole {
        return tcp::verdict(near, offset + HEADER_WITHOUT_OPTIONS, Missing::Near);
    }
    let missing = if whole { Missing::Malformed } else { Missing::InLaterFragment };
    tcp::verdict(packet.far, offset + usize::from(words) * 4, missing)
}
