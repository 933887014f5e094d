//! The IPv6 header and its extension headers (RFC 8200 sections 3 and 4).

use super::{
    Bytes, Packet, Verdict,
    tcp::{self, Missing},
};

const OFFSET_OF_NEXT_HEADER: usize = 6;
const IPV6_HEADER: usize = 40;
/// How many extension headers are followed: as many as RFC 8200 section 4.1 names, less the two that encrypt or
/// authenticate. A longer chain is opaque, which counts.
const EXTENSION_HEADERS: usize = 5;

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
        return Verdict::SHORT;
    }
    let next = next.value();
    if next == TCP {
        return tcp::verdict(packet.near, offset + IPV6_HEADER, Missing::Near);
    }
    behind_extensions(packet.far, next, offset + IPV6_HEADER)
}

/// Follows the chain of extension headers that begins at `at`.
///
/// What is known at the loop's end is the same on every way through it, but for values that the verifier does not
/// follow: else it would look at every combination of headers, and give up.
#[inline(always)]
fn behind_extensions<B: Bytes + ?Sized>(bytes: &B, mut next: u16, mut at: usize) -> Verdict {
    let mut more_fragments = 0;
    for _ in 0..EXTENSION_HEADERS {
        if next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS && next != FRAGMENT {
            break;
        }
        let following = bytes.u8(at);
        let length = bytes.u8(at + 1);
        if following.is_absent() || length.is_absent() {
            return missing(more_fragments).verdict();
        }
        let mut units = length.value() & 0xff;
        if next == FRAGMENT {
            units = 0; // the byte is reserved, whatever it holds
            let field = bytes.u16(at + 2);
            if field.is_absent() {
                return missing(more_fragments).verdict();
            }
            if field.value() & FRAGMENT_OFFSET != 0 {
                return Verdict::OTHER;
            }
            more_fragments |= field.value() & MORE_FRAGMENTS;
        }
        next = following.value();
        at += (usize::from(units) + 1) * 8;
    }
    match next {
        TCP => tcp::verdict(bytes, at, missing(more_fragments)),
        // Too long a chain, or one whose end is not looked for.
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | FRAGMENT | AUTHENTICATION => Verdict::OPAQUE,
        _ => Verdict::OTHER,
    }
}

#[inline(always)]
fn missing(more_fragments: u16) -> Missing {
    if more_fragments == 0 { Missing::Malformed } else { Missing::InLaterFragment }
}
