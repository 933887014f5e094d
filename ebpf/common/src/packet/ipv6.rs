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

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

const MORE_FRAGMENTS: u16 = 0x0001;
const FRAGMENT_OFFSET: u16 = 0xfff8;

#[inline(always)]
pub(super) fn verdict<N, F>(packet: &Packet<'_, N, F>, offset: usize) -> Verdict
where
    N: Bytes + ?Sized,
    F: Bytes + ?Sized,
{
    let Some(next) = packet.near.u8(offset + OFFSET_OF_NEXT_HEADER) else {
        return Verdict::Short;
    };
    if next == TCP {
        return tcp::verdict(packet.near, offset + IPV6_HEADER, Missing::Near);
    }
    behind_extensions(packet.far, next, offset + IPV6_HEADER)
}

/// Follows the chain of extension headers that begins at `at`.
#[inline(always)]
fn behind_extensions<B: Bytes + ?Sized>(bytes: &B, mut next: u8, mut at: usize) -> Verdict {
    let mut missing = Missing::Malformed;
    for _ in 0..EXTENSION_HEADERS {
        let unit = match next {
            TCP => return tcp::verdict(bytes, at, missing),
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | FRAGMENT => 8,
            AUTHENTICATION => 4,
            _ => return Verdict::Other,
        };
        let (Some(following), Some(length)) = (bytes.u8(at), bytes.u8(at + 1)) else {
            return missing.verdict();
        };
        let length = usize::from(length);
        let units = match next {
            FRAGMENT => match bytes.u16(at + 2) {
                Some(field) if field & FRAGMENT_OFFSET != 0 => return Verdict::Other,
                Some(field) => {
                    if field & MORE_FRAGMENTS != 0 {
                        missing = Missing::InLaterFragment;
                    }
                    1
                }
                None => return missing.verdict(),
            },
            AUTHENTICATION => length + 2, // RFC 4302 section 2.2
            _ => length + 1,
        };
        next = following;
        at += units * unit;
    }
    match next {
        TCP => tcp::verdict(bytes, at, missing),
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | AUTHENTICATION | FRAGMENT => Verdict::Opaque,
        _ => Verdict::Other,
    }
}
