//! Byte vectors for every way in which a SYN can arrive, and for what only looks like one. The kernel runs the same
//! code.

extern crate std;

use std::{vec, vec::Vec};

use super::*;

const PORT: u16 = 8080;
const SYN_TO_PORT: Verdict = Verdict::syn(PORT);

/// A TCP header with these flags, to [`PORT`].
fn tcp(flags: u8) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[0..2].copy_from_slice(&40_000_u16.to_be_bytes());
    header[2..4].copy_from_slice(&PORT.to_be_bytes());
    header[12] = 0x50;
    header[13] = flags;
    header
}

/// An IPv4 packet: options in bytes (a multiple of 4), the fragment field, and what follows the header.
fn ipv4(options: usize, fragment: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20 + options];
    packet[0] = 0x40 | u8::try_from(5 + options / 4).unwrap();
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[9] = protocol;
    packet.extend_from_slice(payload);
    packet
}

/// An IPv6 packet: the first next-header number, and what follows the header.
fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[0] = 0x60;
    packet[6] = next;
    packet.extend_from_slice(payload);
    packet
}

/// An extension header of `units` times 8 bytes beyond the first 8.
fn extension(next: u8, units: u8) -> Vec<u8> {
    let mut header = vec![0; (usize::from(units) + 1) * 8];
    header[0] = next;
    header[1] = units;
    header
}

/// A fragment header.
fn fragment(next: u8, field: u16) -> Vec<u8> {
    let mut header = extension(next, 0);
    header[2..4].copy_from_slice(&field.to_be_bytes());
    header
}

fn framed(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

/// What a frame is, read whole.
fn read(frame: &[u8]) -> Verdict {
    read_in_two(frame, frame)
}

/// What a frame is when only a part of it can be read directly, wherever its TCP header is.
fn read_in_two(near: &[u8], far: &[u8]) -> Verdict {
    let verdict = read_with_place(near, far);
    if verdict.is(Kind::SynBehind) { Verdict::syn(verdict.port()) } else { verdict }
}

fn read_with_place(near: &[u8], far: &[u8]) -> Verdict {
    let packet = Packet { near, far };
    match ether_type(near) {
        EtherType::Ipv4 => packet.ipv4(ETHERNET_HEADER),
        EtherType::Ipv6 => packet.ipv6(ETHERNET_HEADER),
        EtherType::Other => Verdict::OTHER,
    }
}

fn v4(packet: &[u8]) -> Verdict {
    read(&framed(0x0800, packet))
}

fn v6(packet: &[u8]) -> Verdict {
    read(&framed(0x86dd, packet))
}

#[test]
fn a_syn_is_found_over_both_families() {
    assert_eq!(v4(&ipv4(0, 0, 6, &tcp(0x02))), SYN_TO_PORT);
    assert_eq!(v4(&ipv4(0, 0x4000, 6, &tcp(0x02))), SYN_TO_PORT, "don't fragment");
    assert_eq!(v6(&ipv6(6, &tcp(0x02))), SYN_TO_PORT);
}

#[test]
fn a_syn_that_asks_for_ecn_or_carries_data_counts() {
    assert_eq!(v4(&ipv4(0, 0, 6, &tcp(0xc2))), SYN_TO_PORT, "ECE and CWR");
    assert_eq!(v4(&ipv4(0, 0, 6, &tcp(0x0a))), SYN_TO_PORT, "PSH");
    assert_eq!(v4(&ipv4(0, 0, 6, &tcp(0x22))), SYN_TO_PORT, "URG");
}

#[test]
fn of_all_flags_only_syn_alone_counts() {
    for flags in 0..=u8::MAX {
        let syn = flags & 0x17 == 0x02;
        let expected = if syn { SYN_TO_PORT } else { Verdict::OTHER };
        assert_eq!(v4(&ipv4(0, 0, 6, &tcp(flags))), expected, "flags {flags:#x}");
        assert_eq!(v6(&ipv6(6, &tcp(flags))), expected, "flags {flags:#x}");
    }
}

#[test]
fn ipv4_options_of_every_length_are_stepped_over() {
    for options in (0..=40).step_by(4) {
        assert_eq!(v4(&ipv4(options, 0, 6, &tcp(0x02))), SYN_TO_PORT, "{options} bytes");
        assert_eq!(v4(&ipv4(options, 0, 6, &tcp(0x10))), Verdict::OTHER, "{options} bytes");
    }
}

#[test]
fn an_ipv4_header_shorter_than_its_minimum_is_dropped_by_the_kernel() {
    for words in 0..5 {
        let mut packet = ipv4(0, 0, 6, &tcp(0x02));
        packet[0] = 0x40 | words;
        assert_eq!(v4(&packet), Verdict::OTHER);
    }
}

#[test]
fn other_protocols_are_none_of_ours() {
    for protocol in (0..=u8::MAX).filter(|protocol| *protocol != 6) {
        assert_eq!(v4(&ipv4(0, 0, protocol, &tcp(0x02))), Verdict::OTHER, "protocol {protocol}");
    }
    assert_eq!(v6(&ipv6(17, &tcp(0x02))), Verdict::OTHER, "UDP");
    assert_eq!(v6(&ipv6(58, &tcp(0x02))), Verdict::OTHER, "ICMPv6");
    assert_eq!(v6(&ipv6(59, &tcp(0x02))), Verdict::OTHER, "no next header");
    assert_eq!(read(&framed(0x0806, &tcp(0x02))), Verdict::OTHER, "ARP");
    assert_eq!(read(&framed(0x8100, &ipv4(0, 0, 6, &tcp(0x02)))), Verdict::OTHER, "a tag that was not stripped");
}

#[test]
fn a_first_fragment_with_its_flags_is_a_syn_and_one_without_is_opaque() {
    assert_eq!(v4(&ipv4(0, 0x2000, 6, &tcp(0x02))), SYN_TO_PORT);
    assert_eq!(v4(&ipv4(0, 0x2000, 6, &tcp(0x10))), Verdict::OTHER);
    assert_eq!(v4(&ipv4(0, 0x2000, 6, &tcp(0x02)[..8])), Verdict::opaque_port(PORT));
    assert_eq!(v4(&ipv4(0, 0x2000, 6, &tcp(0x02)[..3])), Verdict::OPAQUE);
    assert_eq!(v6(&ipv6(44, &[fragment(6, 1), tcp(0x02)].concat())), SYN_TO_PORT);
    assert_eq!(v6(&ipv6(44, &[fragment(6, 1), tcp(0x02)[..8].to_vec()].concat())), Verdict::opaque_port(PORT));
    assert_eq!(v6(&ipv6(44, &[fragment(6, 1)].concat())), Verdict::OPAQUE);
    assert_eq!(v6(&ipv6(44, &[fragment(60, 1)].concat())), Verdict::OPAQUE, "an extension header in a later fragment");
}

#[test]
fn later_fragments_are_not_counted_again() {
    assert_eq!(v4(&ipv4(0, 0x2001, 6, &tcp(0x02))), Verdict::OTHER);
    assert_eq!(v4(&ipv4(0, 0x0001, 6, &tcp(0x02))), Verdict::OTHER);
    assert_eq!(v6(&ipv6(44, &[fragment(6, 0x0009), tcp(0x02)].concat())), Verdict::OTHER);
    assert_eq!(v6(&ipv6(44, &[fragment(6, 0x0008), tcp(0x02)].concat())), Verdict::OTHER);
}

#[test]
fn an_atomic_ipv6_fragment_is_a_whole_packet() {
    assert_eq!(v6(&ipv6(44, &[fragment(6, 0), tcp(0x02)].concat())), SYN_TO_PORT);
    assert_eq!(v6(&ipv6(44, &[fragment(6, 0), tcp(0x02)[..8].to_vec()].concat())), Verdict::OTHER, "cut short");
}

#[test]
fn ipv6_extension_headers_are_followed() {
    for next in [0, 43, 60] {
        for units in [0, 1, 5] {
            assert_eq!(v6(&ipv6(next, &[extension(6, units), tcp(0x02)].concat())), SYN_TO_PORT);
        }
    }
    let chain = [extension(60, 0), extension(43, 1), extension(44, 0), fragment(60, 0), extension(6, 2), tcp(0x02)];
    assert_eq!(v6(&ipv6(0, &chain.concat())), SYN_TO_PORT);
}

#[test]
fn an_authenticated_packet_is_opaque() {
    assert_eq!(v6(&ipv6(51, &[extension(6, 1), tcp(0x02)].concat())), Verdict::OPAQUE);
}

#[test]
fn the_reserved_byte_of_a_fragment_header_hides_nothing() {
    let mut header = fragment(6, 0);
    header[1] = 200;
    assert_eq!(v6(&ipv6(44, &[header, tcp(0x02)].concat())), SYN_TO_PORT);
}

#[test]
fn a_chain_of_five_is_followed_and_a_longer_one_is_opaque() {
    let chain = |length: usize, last: u8| {
        let mut bytes = Vec::new();
        for _ in 1..length {
            bytes.extend(extension(60, 0));
        }
        bytes.extend(extension(last, 0));
        bytes.extend(tcp(0x02));
        ipv6(60, &bytes)
    };
    assert_eq!(v6(&chain(5, 6)), SYN_TO_PORT);
    assert_eq!(v6(&chain(5, 58)), Verdict::OTHER);
    assert_eq!(v6(&chain(6, 6)), Verdict::OPAQUE);
}

#[test]
fn a_packet_cut_short_anywhere_is_never_a_syn_and_never_a_panic() {
    let packets = [
        framed(0x0800, &ipv4(0, 0, 6, &tcp(0x02))),
        framed(0x0800, &ipv4(12, 0, 6, &tcp(0x02))),
        framed(0x86dd, &ipv6(6, &tcp(0x02))),
        framed(0x86dd, &ipv6(0, &[extension(44, 0), fragment(6, 0), tcp(0x02)].concat())),
    ];
    for frame in &packets {
        assert_eq!(read(frame), SYN_TO_PORT);
        let flags_at = frame.len() - 20 + 13;
        for length in 0..=flags_at {
            let verdict = read(&frame[..length]);
            assert!(verdict == Verdict::OTHER || verdict == Verdict::SHORT, "{length} bytes: {verdict:?}");
        }
    }
}

#[test]
fn what_cannot_be_read_directly_is_short_until_it_is_pulled() {
    let frame = framed(0x0800, &ipv4(0, 0, 6, &tcp(0x02)));
    assert_eq!(read_in_two(&frame[..40], &frame), Verdict::SHORT);
    assert_eq!(read_in_two(&frame[..48], &frame), SYN_TO_PORT);
    // Behind options and extension headers the far reader is asked, whatever lies in one piece.
    let frame = framed(0x0800, &ipv4(8, 0, 6, &tcp(0x02)));
    assert_eq!(read_in_two(&frame[..34], &frame), SYN_TO_PORT);
    let frame = framed(0x86dd, &ipv6(0, &[extension(6, 0), tcp(0x02)].concat()));
    assert_eq!(read_in_two(&frame[..54], &frame), SYN_TO_PORT);
}

#[test]
fn a_syn_says_where_its_tcp_header_is_and_from_there_who_sent_it() {
    let addresses = |packet: &mut Vec<u8>, at: usize, length: usize| {
        for (number, byte) in packet[at..at + length].iter_mut().enumerate() {
            *byte = u8::try_from(number + 1).unwrap();
        }
    };
    let ports = u32::from_ne_bytes([0x9c, 0x40, 0x1f, 0x90]);
    let word = |first: u8| u32::from_ne_bytes([first, first + 1, first + 2, first + 3]);
    for options in (0..=40).step_by(4) {
        let mut packet = ipv4(options, 0, 6, &tcp(0x02));
        addresses(&mut packet, 12, 8);
        let frame = framed(0x0800, &packet);
        let whole = Packet { near: frame.as_slice(), far: frame.as_slice() };
        let usual = options == 0;
        let verdict = read_with_place(&frame, &frame);
        assert!(verdict.is(if usual { Kind::Syn } else { Kind::SynBehind }), "{options} bytes of options: {verdict:?}");
        let place = if usual { Ipv4::TCP_WITHOUT_OPTIONS } else { whole.tcp_behind_ipv4(ETHERNET_HEADER) };
        assert_eq!(place, 34 + options);
        let expected = Ipv4 { source: word(1), destination: word(5), ports };
        assert_eq!(Ipv4::read(frame.as_slice(), ETHERNET_HEADER, place), expected);
    }
    let reserved = |mut header: Vec<u8>| {
        header[1] = 77; // a reserved byte of a fragment header, which is no length
        header
    };
    let chains = [
        (6, Vec::new()),
        (60, extension(6, 0)),
        (0, extension(6, 255)),
        (44, reserved(fragment(6, 0))),
        (
            60,
            [extension(44, 1), reserved(fragment(43, 0)), extension(60, 2), extension(60, 0), extension(6, 3)].concat(),
        ),
    ];
    for (first, chain) in chains {
        let mut packet = ipv6(first, &[chain.clone(), tcp(0x02)].concat());
        addresses(&mut packet, 8, 32);
        let frame = framed(0x86dd, &packet);
        let whole = Packet { near: frame.as_slice(), far: frame.as_slice() };
        let usual = chain.is_empty();
        let verdict = read_with_place(&frame, &frame);
        assert!(verdict.is(if usual { Kind::Syn } else { Kind::SynBehind }), "{chain:?}: {verdict:?}");
        let place = if usual { Ipv6::TCP_WITHOUT_EXTENSIONS } else { whole.tcp_behind_ipv6(ETHERNET_HEADER) };
        assert_eq!(place, 54 + chain.len());
        let [source, destination] = [1, 17].map(|first| [0, 4, 8, 12].map(|more| word(first + more)));
        assert_eq!(Ipv6::read(frame.as_slice(), ETHERNET_HEADER, place), Ipv6 { source, destination, ports });
    }
}

#[test]
fn any_bytes_give_a_verdict() {
    // A small generator with a fixed seed: the same bytes in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    let mut syns = 0;
    for round in 0..200_000 {
        let mut frame: Vec<u8> = (0..next()).map(|_| next()).collect();
        if let Some(ether_type) = frame.get_mut(12..14) {
            ether_type.copy_from_slice(if round % 2 == 0 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        }
        let packet = Packet { near: frame.as_slice(), far: frame.as_slice() };
        syns += u32::from(read(&frame).is(Kind::Syn));
        for at in [packet.tcp_behind_ipv4(ETHERNET_HEADER), packet.tcp_behind_ipv6(ETHERNET_HEADER)] {
            joins(&packet, at, false);
        }
    }
    assert!(syns > 0, "the generator never makes a SYN: it shows nothing");
}

// === the options of a SYN ===

/// A TCP header with these options, padded with `END`, and data behind it.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut header = tcp(0x02);
    header.extend_from_slice(options);
    header.resize(header.len().next_multiple_of(4), 0);
    header[12] = u8::try_from(header.len() / 4).unwrap() << 4;
    header.extend_from_slice(&[30, 12, 0x10]); // data is no option
    header.resize(header.len() + 20, 7);
    header
}

/// Whether it joins a connection, by both ways of reading, which must agree.
fn joins_by(options: &[u8]) -> bool {
    let frame = with_options(options);
    let packet = Packet { near: frame.as_slice(), far: frame.as_slice() };
    let joining = joins(&packet, 0, false);
    assert_eq!(joins(&packet, 0, true), joining, "{options:?}");
    assert_eq!(joins(&Packet { near: &frame[..24], ..packet }, 0, true), joining, "only a part is near: {options:?}");
    joining
}

const MP_JOIN: [u8; 12] = [30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const MSS: [u8; 4] = [2, 4, 5, 0xb4];

#[test]
fn a_join_is_found_wherever_it_stands_among_the_options() {
    assert!(joins_by(&MP_JOIN));
    assert!(joins_by(&[&MSS[..], &MP_JOIN].concat()));
    // As Linux sends it: behind MSS, SACK permitted, timestamps and window scale.
    let linux = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    assert!(joins_by(&[&linux[..], &MP_JOIN].concat()));
    for before in 0..=28 {
        assert!(joins_by(&[&vec![1; before][..], &MP_JOIN].concat()), "behind {before} times NOP");
    }
    for flags in 0x10..=0x1f {
        let mut join = MP_JOIN;
        join[2] = flags;
        assert!(joins_by(&join), "the lower half of the byte is flags");
    }
}

#[test]
fn what_is_not_a_join_is_none() {
    assert!(!joins_by(&[]));
    assert!(!joins_by(&MSS));
    assert!(!joins_by(&[30, 12, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "MP_CAPABLE");
    assert!(!joins_by(&[30, 4, 0x00, 0]), "MP_CAPABLE of version 1");
    assert!(!joins_by(&[30, 16, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), "the length of a SYN-ACK's");
    assert!(!joins_by(&[&[0][..], &MP_JOIN].concat()), "behind the end of the options");
    assert!(!joins_by(&[&[8, 20][..], &MP_JOIN, &[1; 6]].concat()), "inside another option");
    assert!(!joins_by(&[&[8, 0][..], &MP_JOIN].concat()), "behind an option without length");
    assert!(!joins_by(&[&[8, 1][..], &MP_JOIN].concat()), "behind an option shorter than itself");
    assert!(!joins_by(&[&[8, 255][..], &MP_JOIN].concat()), "behind one that is longer than the header");
    assert!(!joins_by(&MP_JOIN[..8]), "cut short by the header's end");
}
