//! UDP datagrams that open a QUIC connection, by what stands unencrypted at their beginning: the header form, the version
//! and the type of the first packet (RFC 9000 section 17.2; RFC 9369 section 3.2 for version 2; RFC 8999 for what is the same
//! in all versions).
//!
//! A client's first datagrams begin with an Initial packet. That nearly always is the first of the packets in a datagram,
//! as they go from the lowest level of encryption to the highest (RFC 9000 section 12.2); 0-RTT is what could go before it,
//! which is sent to open a connection, too, and so counts like it. The fixed bit is not looked at: a client may clear it
//! (RFC 9287).

use super::{Bytes, Verdict, tcp::Missing};

const UDP_HEADER: usize = 8;
const OFFSET_OF_DESTINATION: usize = 2;
const OFFSET_OF_VERSION: usize = UDP_HEADER + 1;
/// The bit of a long header; packets of a connection that is open have a short one.
const LONG: u16 = 0x80;
const TYPE: u16 = 0x30;

/// A version of 0 is negotiation, which only servers send.
const NEGOTIATION: u32 = 0;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;

/// Reads a datagram whose UDP header begins at `offset`.
#[inline(always)]
pub(super) fn verdict<B: Bytes + ?Sized>(bytes: &B, offset: usize, missing: Missing) -> Verdict {
    // The header's form comes first: nearly every datagram that gets here belongs to a connection, and leaves after it.
    let first = bytes.u8(offset + UDP_HEADER);
    if first.is_absent() {
        return absent(bytes, offset, missing);
    }
    if first.value() & LONG == 0 {
        return Verdict::OTHER;
    }
    let version = bytes.u32(offset + OFFSET_OF_VERSION);
    if version.is_absent() {
        return absent(bytes, offset, missing);
    }
    let port = bytes.u16(offset + OFFSET_OF_DESTINATION).value();
    let kind = first.value() & TYPE;
    match version.four() {
        VERSION_1 if kind == 0x00 || kind == 0x10 => Verdict::initial(port),
        VERSION_2 if kind == 0x10 || kind == 0x20 => Verdict::initial(port),
        NEGOTIATION | VERSION_1 | VERSION_2 => Verdict::OTHER,
        // A client that begins with a version that is not known here: the server offers it another one.
        _ => Verdict::opaque_datagram(port),
    }
}

/// The beginning of the first packet is not there: no QUIC packet is that short, unless the rest is in a later fragment.
#[inline(always)]
fn absent<B: Bytes + ?Sized>(bytes: &B, offset: usize, missing: Missing) -> Verdict {
    if let Missing::InLaterFragment = missing {
        let port = bytes.u16(offset + OFFSET_OF_DESTINATION);
        return if port.is_absent() { Verdict::OTHER } else { Verdict::opaque_datagram(port.value()) };
    }
    missing.verdict()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{vec, vec::Vec};

    use super::super::{ETHERNET_HEADER, Kind, Packet};
    use super::*;

    const PORT: u16 = 443;

    /// A UDP datagram to [`PORT`].
    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0x9c, 0x40, 1, 0xbb, 0, 0, 0, 0];
        datagram.extend_from_slice(payload);
        datagram
    }

    /// The beginning of a QUIC packet.
    fn quic(first: u8, version: u32) -> Vec<u8> {
        let mut packet = vec![first];
        packet.extend_from_slice(&version.to_be_bytes());
        packet.extend_from_slice(&[8; 40]);
        packet
    }

    fn v4(options: usize, fragment: u16, datagram: &[u8]) -> Verdict {
        let mut frame = vec![0; ETHERNET_HEADER + 20 + options];
        frame[ETHERNET_HEADER] = 0x40 | u8::try_from(5 + options / 4).unwrap();
        frame[ETHERNET_HEADER + 6..ETHERNET_HEADER + 8].copy_from_slice(&fragment.to_be_bytes());
        frame[ETHERNET_HEADER + 9] = 17;
        frame.extend_from_slice(datagram);
        Packet { near: frame.as_slice(), far: frame.as_slice() }.ipv4(ETHERNET_HEADER)
    }

    fn v6(extensions: &[u8], datagram: &[u8]) -> Verdict {
        let mut frame = vec![0; ETHERNET_HEADER + 40];
        frame[ETHERNET_HEADER] = 0x60;
        frame[ETHERNET_HEADER + 6] = if extensions.is_empty() { 17 } else { 60 };
        frame.extend_from_slice(extensions);
        frame.extend_from_slice(datagram);
        Packet { near: frame.as_slice(), far: frame.as_slice() }.ipv6(ETHERNET_HEADER)
    }

    /// The same over both families, and behind IPv4 options and an IPv6 extension header.
    fn read(payload: &[u8]) -> Verdict {
        let datagram = udp(payload);
        let verdict = v4(0, 0, &datagram);
        assert_eq!(v6(&[], &datagram), verdict);
        if !verdict.is(Kind::Short) {
            assert_eq!(v4(8, 0, &datagram), verdict);
            assert_eq!(v6(&[17, 0, 1, 4, 0, 0, 0, 0], &datagram), verdict);
        }
        verdict
    }

    #[test]
    fn initial_and_0_rtt_packets_of_both_versions_open_a_connection() {
        let initial = Verdict::initial(PORT);
        for (name, first, version) in [
            ("Initial", 0xc3, 1),
            ("0-RTT", 0xd3, 1),
            ("Initial of version 2", 0xd3, 0x6b33_43cf),
            ("0-RTT of version 2", 0xe3, 0x6b33_43cf),
            ("Initial without the fixed bit", 0x83, 1),
        ] {
            assert_eq!(read(&quic(first, version)), initial, "{name}");
        }
    }

    #[test]
    fn what_belongs_to_a_connection_or_comes_from_a_server_opens_none() {
        for (name, first, version) in [
            ("Handshake", 0xe3, 1),
            ("Retry", 0xf3, 1),
            ("Handshake of version 2", 0xf3, 0x6b33_43cf),
            ("Retry of version 2", 0xc3, 0x6b33_43cf),
            ("version negotiation", 0xc3, 0),
            ("a short header", 0x43, 1),
            ("a short header without the fixed bit", 0x03, 1),
        ] {
            assert_eq!(read(&quic(first, version)), Verdict::OTHER, "{name}");
        }
    }

    #[test]
    fn another_version_may_open_one() {
        for version in [0xff00_001d, 0x0a0a_0a0a, 2, u32::MAX - 1] {
            assert_eq!(read(&quic(0xc3, version)), Verdict::opaque_datagram(PORT), "{version:#x}");
        }
        assert_eq!(read(&quic(0x43, 0xff00_001d)), Verdict::OTHER, "a short header has no version");
    }

    #[test]
    fn garbage_opens_none() {
        for length in 0..5 {
            assert_eq!(read(&[0xff; 5][..length]), Verdict::SHORT, "{length} bytes");
            assert_eq!(v4(8, 0, &udp(&[0xff; 5][..length])), Verdict::OTHER, "{length} bytes, all of them read");
        }
        assert_eq!(v4(8, 0, &[1, 2, 3]), Verdict::OTHER, "not even a UDP header");
    }

    #[test]
    fn of_fragments_the_first_counts() {
        let datagram = udp(&quic(0xc3, 1));
        assert_eq!(v4(0, 0x2000, &datagram), Verdict::initial(PORT));
        assert_eq!(v4(0, 0x2000, &datagram[..8]), Verdict::opaque_datagram(PORT), "QUIC's header is in a later one");
        assert_eq!(v4(0, 0x2000, &datagram[..10]), Verdict::opaque_datagram(PORT), "the version is");
        assert_eq!(v4(0, 0x2000, &datagram[..2]), Verdict::OTHER, "too short for the kernel");
        assert_eq!(v4(0, 0x0001, &datagram), Verdict::OTHER, "a later fragment");
    }

    #[test]
    fn every_first_byte_and_version_has_its_kind() {
        for first in 0..=u8::MAX {
            for version in [0, 1, 0x6b33_43cf, 0xff00_001d] {
                let (long, kind) = (first & 0x80 != 0, first & 0x30);
                let expected = match version {
                    1 if long && kind < 0x20 => Verdict::initial(PORT),
                    0x6b33_43cf if long && (kind == 0x10 || kind == 0x20) => Verdict::initial(PORT),
                    0 | 1 | 0x6b33_43cf => Verdict::OTHER,
                    _ if !long => Verdict::OTHER,
                    _ => Verdict::opaque_datagram(PORT),
                };
                assert_eq!(read(&quic(first, version)), expected, "{first:#x} {version:#x}");
            }
        }
    }
}
