//! The IPv6 header and its extension headers (RFC 8200 sections 3 and 4).

use super::{
    Bytes, Packet, Verdict, quic,
    tcp::{self, Missing},
};

const OFFSET_OF_NEXT_HEADER: usize = 6;
const IPV6_HEADER: usize = 40;
const OFFSET_OF_SOURCE: usize = 8;
const OFFSET_OF_DESTINATION: usize = 24;
/// How many extension headers are followed: as many as RFC 8200 section 4.1 names, less the two that encrypt or
/// authenticate. A longer chain is opaque, which counts.
const EXTENSION_HEADERS: usize = 5;

const HOP_BY_HOP: u16 = 0;
const TCP: u16 = 6;
const UDP: u16 = 17;
const ROUTING: u16 = 43;
const FRAGMENT: u16 = 44;
const AUTHENTICATION: u16 = 51;
const DESTINATION_OPTIONS: u16 = 60;

const MORE_FRAGMENTS: u16 = 0x0001;
const FRAGMENT_OFFSET: u16 = 0xfff8;

/// The addresses and ports of a TCP segment over IPv6, in the order and byte order of the kernel's `bpf_sock_tuple`
/// (`linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ipv6 {
    /// The sender.
    pub source: [u32; 4],
    /// The receiver.
    pub destination: [u32; 4],
    /// The sender's port and the receiver's.
    pub ports: u32,
}

impl Ipv6 {
    /// Where the TCP header is if there is no extension header.
    pub const TCP_WITHOUT_EXTENSIONS: usize = super::ETHERNET_HEADER + IPV6_HEADER;

    /// Reads them: the IP header begins at `ip`, the TCP header at `tcp`. Where a verdict is a SYN they are all there.
    #[inline(always)]
    pub fn read<B: Bytes + ?Sized>(bytes: &B, ip: usize, tcp: usize) -> Self {
        let word = |at| bytes.u32(ip + at).four().to_be();
        let address = |at| [word(at), word(at + 4), word(at + 8), word(at + 12)];
        Self {
            source: address(OFFSET_OF_SOURCE),
            destination: address(OFFSET_OF_DESTINATION),
            ports: bytes.u32(tcp).four().to_be(),
        }
    }
}

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
    if next == UDP {
        return quic::verdict(packet.near, offset + IPV6_HEADER, Missing::Near);
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
        UDP => quic::verdict(bytes, at, missing(more_fragments)),
        // Too long a chain, or one whose end is not looked for.
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | FRAGMENT | AUTHENTICATION => Verdict::OPAQUE,
        _ => Verdict::OTHER,
    }
}

#[inline(always)]
fn missing(more_fragments: u16) -> Missing {
    if more_fragments == 0 { Missing::Malformed } else { Missing::InLaterFragment }
}

/// Where the TCP or UDP header is that [`verdict`] found, behind extension headers or without.
#[inline(always)]
pub(super) fn tcp<B: Bytes + ?Sized>(bytes: &B, offset: usize) -> usize {
    let mut next = bytes.u8(offset + OFFSET_OF_NEXT_HEADER).value();
    let mut at = offset + IPV6_HEADER;
    for _ in 0..EXTENSION_HEADERS {
        if next == TCP || next == UDP {
            break;
        }
        let units = if next == FRAGMENT { 0 } else { bytes.u8(at + 1).value() & 0xff };
        next = bytes.u8(at).value();
        at += (usize::from(units) + 1) * 8;
    }
    at
}
