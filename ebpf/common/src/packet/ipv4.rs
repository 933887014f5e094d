//! The IPv4 header (RFC 791 section 3.1).

use super::{
    Bytes, Field, Packet, Verdict, quic,
    tcp::{self, Missing},
};

const OFFSET_OF_FRAGMENT: usize = 6;
const OFFSET_OF_PROTOCOL: usize = 9;
const PROTOCOL_TCP: Field = Field::of(6);
const PROTOCOL_UDP: Field = Field::of(17);
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
/// In 32-bit words; also the shortest valid one.
const WORDS_WITHOUT_OPTIONS: u16 = 5;
const HEADER_WITHOUT_OPTIONS: usize = 20;
const OFFSET_OF_SOURCE: usize = 12;
const OFFSET_OF_DESTINATION: usize = 16;

/// Where the TCP header is, by the length of the IP header.
#[inline(always)]
pub(super) fn tcp<B: Bytes + ?Sized>(bytes: &B, offset: usize) -> usize {
    offset + usize::from(bytes.u8(offset).value() & 0x0f) * 4
}

/// The addresses and ports of a TCP segment over IPv4, in the order and byte order of the kernel's `bpf_sock_tuple`
/// (`linux/bpf.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ipv4 {
    /// The sender.
    pub source: u32,
    /// The receiver.
    pub destination: u32,
    /// The sender's port and the receiver's.
    pub ports: u32,
}

impl Ipv4 {
    /// Where the TCP header is if the IP header has no options.
    pub const TCP_WITHOUT_OPTIONS: usize = super::ETHERNET_HEADER + HEADER_WITHOUT_OPTIONS;

    /// Reads them: the IP header begins at `ip`, the TCP header at `tcp`. Where a verdict is a SYN they are all there.
    #[inline(always)]
    pub fn read<B: Bytes + ?Sized>(bytes: &B, ip: usize, tcp: usize) -> Self {
        Self {
            source: bytes.u32(ip + OFFSET_OF_SOURCE).four().to_be(),
            destination: bytes.u32(ip + OFFSET_OF_DESTINATION).four().to_be(),
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
    let near = packet.near;
    let protocol = near.u8(offset + OFFSET_OF_PROTOCOL);
    if protocol.is_absent() {
        return Verdict::SHORT; // it is the last of the fields that are read here
    }
    if protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP {
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
        let at = offset + HEADER_WITHOUT_OPTIONS;
        return if protocol == PROTOCOL_TCP {
            tcp::verdict(near, at, Missing::Near)
        } else {
            quic::verdict(near, at, Missing::Near)
        };
    }
    let missing = if whole { Missing::Malformed } else { Missing::InLaterFragment };
    let at = offset + usize::from(words) * 4;
    if protocol == PROTOCOL_TCP {
        tcp::verdict(packet.far, at, missing)
    } else {
        quic::verdict(packet.far, at, missing)
    }
}
