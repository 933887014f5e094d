//! The IPv6 header and its extension headers (RFC 8200 sections 3 and 4).

use super::{
    Bytes, Packet, Verdict,
    tcp::{self, Missing},
};

const OFFSET_OF_NEXT_HEADER: usize = 6;
const IPV6_HEADER: usize = 40;
/// How many extension headers are followed. RFC 8200 section 4.1 names seven at most, counting destination options
/// twice and a payload that hides its ports; a longer chain is opaque, which counts.
const EXTENSION_HEADERS: usize = 6;

const HOP_BY_HOP: u16 = 0;
const TCP: u16 = 6;
const ROUTING: u16 = 43;
const FRAGMENT: u16 = 44;
const AUTHENTICATION: u16 = 51;
const DESTINATION_OPTIONS: u16 = 60;

const MORE_FRAGMENTS: u16 = 0x0001;
const FRAGMENT_OFFSET: u16 = 0xfff8;

#[inline(always)]
pub(super) fn verdict<N, F>(packet: &Packet<'_, N, F>, offset: usize) -> Verdict
where
    N: Bytes + ?Sized,
    F: Bytes + ?Sized,
{
    let next = packet.near.u8(offset + OFFSET_OF_NEXT_HEADER);
    if next.is_absent() {
        return Verdict::Short;
    }
    let next = next.value();
    if next == TCP {
        return tcp::verdict(packet.near, offset + IPV6_HEADER, Missing::Near);
    }
    behind_extensions(packet.far, next, offset + IPV6_HEADER)
}

/// Follows the chain of extension headers that begins at `at`.
#[inline(always)]
fn behind_extensions<B: Bytes + ?Sized>(bytes: &B, mut next: u16, mut at: usize) -> Verdict {
    let mut missing = Missing::Malformed;
    for _ in 0..EXTENSION_HEADERS {
        let unit = match next {
            TCP => return tcp::verdict(bytes, at, missing),
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | FRAGMENT => 8,
            AUTHENTICATION => 4,
            _ => return Verdict::Other,
        };
        let following = bytes.u8(at);
        let length = bytes.u8(at + 1);
        if following.is_absent() || length.is_absent() {
            return missing.verdict();
        }
        let length = usize::from(length.value() & 0xff);
        let units = match next {
            FRAGMENT => {
                let field = bytes.u16(at + 2);
                if field.is_absent() {
                    return missing.verdict();
                }
                if field.value() & FRAGMENT_OFFSET != 0 {
                    return Verdict::Other;
                }
                if field.value() & MORE_FRAGMENTS != 0 {
                    missing = Missing::InLaterFragment;
                }
                1
            }
            AUTHENTICATION => length + 2, // RFC 4302 section 2.2
            _ => length + 1,
        };
        next = following.value();
        at += units * unit;
    }
    match next {
        TCP => tcp::verdict(bytes, at, missing),
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | AUTHENTICATION | FRAGMENT => Verdict::Opaque,
        _ => Verdict::Other,
    }
}
