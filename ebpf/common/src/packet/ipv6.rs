//! The IPv6 header and its extension headers (RFC 8200 sections 3 and 4).

use super::{Bytes, Verdict, tcp};

const OFFSET_OF_NEXT_HEADER: usize = 6;
const IPV6_HEADER: usize = 40;
/// How many extension headers are followed. RFC 8200 section 4.1 names six that a packet should carry once each (two of
/// them may be destination options); a longer chain is opaque, which counts.
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
pub(super) fn verdict<B: Bytes + ?Sized>(bytes: &B, offset: usize) -> Verdict {
    let Some(mut next) = bytes.u8(offset + OFFSET_OF_NEXT_HEADER) else {
        return Verdict::Short;
    };
    let start = offset + IPV6_HEADER;
    if next == TCP {
        return tcp::verdict(bytes, start, tcp::Whole::Yes);
    }
    let mut at = start;
    let mut whole = tcp::Whole::Yes;
    for _ in 0..EXTENSION_HEADERS {
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => match bytes.u8(at + 1) {
                Some(units) => (usize::from(units) + 1) * 8,
                None => return missing(whole),
            },
            AUTHENTICATION => match bytes.u8(at + 1) {
                Some(words) => (usize::from(words) + 2) * 4, // RFC 4302 section 2.2
                None => return missing(whole),
            },
            FRAGMENT => match bytes.u16(at + 2) {
                Some(field) if field & FRAGMENT_OFFSET != 0 => return Verdict::Other,
                Some(field) => {
                    if field & MORE_FRAGMENTS != 0 {
                        whole = tcp::Whole::FirstFragment;
                    }
                    8
                }
                None => return missing(whole),
            },
            TCP => return tcp::verdict(bytes, at, whole),
            _ => return Verdict::Other,
        };
        next = match bytes.u8(at) {
            Some(next) => next,
            None => return missing(whole),
        };
        at += length;
    }
    match next {
        TCP => tcp::verdict(bytes, at, whole),
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | AUTHENTICATION | FRAGMENT => Verdict::Opaque,
        _ => Verdict::Other,
    }
}

/// Bytes of an extension header are not there: in a first fragment they are in a later one.
#[inline(always)]
fn missing(whole: tcp::Whole) -> Verdict {
    match whole {
        tcp::Whole::Yes => Verdict::Short,
        tcp::Whole::FirstFragment => Verdict::Opaque,
    }
}
