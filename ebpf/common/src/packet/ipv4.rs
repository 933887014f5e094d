//! The IPv4 header (RFC 791 section 3.1).

use super::{Bytes, Verdict, tcp};

const OFFSET_OF_FRAGMENT: usize = 6;
const OFFSET_OF_PROTOCOL: usize = 9;
const PROTOCOL_TCP: u8 = 6;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// In 32-bit words; also the shortest valid one.
const HEADER_WITHOUT_OPTIONS: u8 = 5;

#[inline(always)]
pub(super) fn verdict<B: Bytes + ?Sized>(bytes: &B, offset: usize) -> Verdict {
    let (Some(protocol), Some(fragment), Some(version_and_length)) =
        (bytes.u8(offset + OFFSET_OF_PROTOCOL), bytes.u16(offset + OFFSET_OF_FRAGMENT), bytes.u8(offset))
    else {
        return Verdict::Short;
    };
    if protocol != PROTOCOL_TCP || fragment & FRAGMENT_OFFSET != 0 {
        return Verdict::Other;
    }
    let whole = if fragment & MORE_FRAGMENTS == 0 { tcp::Whole::Yes } else { tcp::Whole::FirstFragment };
    let words = version_and_length & 0x0f;
    if words < HEADER_WITHOUT_OPTIONS {
        return Verdict::Other; // the kernel drops it (`ip_rcv_core`)
    }
    tcp::verdict(bytes, offset + usize::from(words) * 4, whole)
}
