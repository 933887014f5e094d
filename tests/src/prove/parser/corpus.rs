//! Packets that open connections, and packets that only look like it.

use std::net::SocketAddr;

use lastsyn_common::packet::ETHERNET_HEADER;

use super::LISTENING;
use crate::{
    prove::Dice,
    raw::{ACK, ExtensionHeader, SYN, Segment},
};

/// A packet, and how many of its bytes lie in one piece at its beginning.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The packet from its hardware addresses on.
    pub frame: Vec<u8>,
    /// How it lies in memory.
    pub in_first_piece: usize,
}

impl Sample {
    /// In one piece.
    pub fn whole(frame: Vec<u8>) -> Self {
        Self { in_first_piece: frame.len(), frame }
    }
}

/// A packet of every kind, by name.
pub fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let sources =
        [SocketAddr::from(([192, 0, 2, 1], 40_000)), SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 40_000))];
    let [v4, v6] = [0, 1].map(|family: usize| {
        let of = |addresses: [SocketAddr; 2]| addresses.into_iter().nth(family).unwrap_or(sources[0]);
        Segment::syn(of(sources), of(LISTENING))
    });
    let header = |kind, length| ExtensionHeader { kind, body: vec![0; length] };
    let fragment = |field: u16| ExtensionHeader { kind: 44, body: [&field.to_be_bytes()[..], &[0, 0, 0, 9]].concat() };
    let behind = |extension_headers| Segment { extension_headers, ..v6.clone() }.to_frame();
    // MP_JOIN (RFC 8684 section 3.2), alone and behind what Linux puts before it.
    let join = [30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let behind_others = |option: &[u8]| [&[2, 4, 5, 0xb4, 4, 2, 1, 1, 3, 3, 7, 1][..], option].concat();
    let cut = |mut frame: Vec<u8>, length| {
        frame.truncate(length);
        frame
    };
    // In place of the TCP header, with ports in the same place.
    let datagram = |segment: &Segment, first: u8, version: u32| {
        let mut frame = segment.to_frame();
        let (protocol, tcp) = if frame.get(12) == Some(&0x08) { (23, 34) } else { (20, 54) };
        if let Some(protocol) = frame.get_mut(protocol) {
            *protocol = 17;
        }
        frame.truncate(tcp + 4);
        frame.extend([0, 28, 0, 0, first]);
        frame.extend(version.to_be_bytes());
        frame.extend([8; 15]);
        frame
    };
    vec![
        ("QUIC over IPv4", datagram(&v4, 0xc0, 1)),
        ("QUIC over IPv6", datagram(&v6, 0xc0, 1)),
        ("QUIC version 2", datagram(&v4, 0xd0, 0x6b33_43cf)),
        ("0-RTT", datagram(&v6, 0xd0, 1)),
        ("a QUIC handshake", datagram(&v4, 0xe0, 1)),
        ("another version", datagram(&v6, 0xc0, 0xff00_001d)),
        ("version negotiation", datagram(&v4, 0xc0, 0)),
        ("QUIC data", datagram(&v4, 0x40, 1)),
        ("IPv4", v4.to_frame()),
        ("IPv6", v6.to_frame()),
        ("data over IPv4", Segment { flags: ACK, payload: vec![7; 60], ..v4.clone() }.to_frame()),
        ("data over IPv6", Segment { flags: ACK, payload: vec![7; 60], ..v6.clone() }.to_frame()),
        ("a SYN with data", Segment { payload: vec![7; 60], ..v4.clone() }.to_frame()),
        ("a join", Segment { tcp_options: join.to_vec(), ..v4.clone() }.to_frame()),
        ("a join behind other options", Segment { tcp_options: behind_others(&join), ..v6.clone() }.to_frame()),
        (
            "a join behind IPv4 options",
            Segment { ip_options: vec![1; 8], tcp_options: behind_others(&join), ..v4.clone() }.to_frame(),
        ),
        (
            "a join behind an extension header",
            Segment { extension_headers: vec![header(60, 6)], tcp_options: join.to_vec(), ..v6.clone() }.to_frame(),
        ),
        ("ECN", Segment { flags: 0xc2, ..v4.clone() }.to_frame()),
        ("SYN and ACK", Segment { flags: SYN | ACK, ..v6.clone() }.to_frame()),
        ("IPv4 options", Segment { ip_options: vec![1; 12], ..v4.clone() }.to_frame()),
        ("40 bytes of IPv4 options", Segment { ip_options: vec![1; 40], ..v4.clone() }.to_frame()),
        ("a first fragment", Segment { fragment: 0x2000, ..v4.clone() }.to_frame()),
        ("a tiny first fragment", cut(Segment { fragment: 0x2000, ..v4.clone() }.to_frame(), 14 + 20 + 8)),
        ("a first fragment without ports", cut(Segment { fragment: 0x2000, ..v4.clone() }.to_frame(), 14 + 20 + 2)),
        ("a later fragment", Segment { fragment: 0x2007, ..v4.clone() }.to_frame()),
        ("a tag", Segment { vlans: vec![5], ..v4 }.to_frame()),
        ("hop-by-hop options", behind(vec![header(0, 6)])),
        ("destination options", behind(vec![header(60, 22)])),
        ("a routing header", behind(vec![header(43, 14)])),
        ("an atomic fragment", behind(vec![fragment(0)])),
        ("a first fragment over IPv6", behind(vec![fragment(1)])),
        ("a tiny first fragment over IPv6", cut(behind(vec![fragment(1)]), 14 + 40 + 8 + 8)),
        ("a later fragment over IPv6", behind(vec![fragment(0x0008)])),
        ("a chain of five", behind(vec![header(0, 6), header(60, 6), header(43, 6), fragment(0), header(60, 14)])),
        ("a chain of six", behind(vec![header(60, 6); 6])),
        ("authentication", behind(vec![header(51, 22)])),
        ("no next header", behind(vec![header(59, 6)])),
    ]
}

/// A packet of the corpus, changed in a few places, mostly where it matters, and maybe cut short.
pub fn mutated(corpus: &[(&'static str, Vec<u8>)], dice: &mut Dice) -> Sample {
    let mut frame = corpus.get(dice.below(corpus.len())).map(|(_, frame)| frame.clone()).unwrap_or_default();
    for _ in 0..dice.below(4) {
        let at = match dice.below(8) {
            0 => dice.below(ETHERNET_HEADER),
            _ => ETHERNET_HEADER + dice.below(frame.len().saturating_sub(ETHERNET_HEADER)),
        };
        let (byte, kind, bit) = (dice.byte(), [0, 6, 17, 43, 44, 51, 60].get(dice.below(7)), 1 << dice.below(8));
        let way = dice.below(3);
        if let Some(place) = frame.get_mut(at) {
            *place = match way {
                0 => byte,
                1 => kind.copied().unwrap_or(byte),
                _ => *place ^ bit,
            };
        }
    }
    // The destination port, wherever it is, or something else.
    if dice.coin() {
        let from_end = dice.below(24).min(frame.len().saturating_sub(ETHERNET_HEADER + 1)) + 1;
        let byte = dice.byte();
        if let Some(place) = frame.len().checked_sub(from_end).and_then(|at| frame.get_mut(at)) {
            *place = byte;
        }
    }
    if dice.below(4) == 0 {
        // The kernel makes no test packet without the whole IP header.
        let least = ETHERNET_HEADER + if frame.get(12) == Some(&0x08) { 20 } else { 40 };
        frame.truncate(least + dice.below(frame.len().saturating_sub(least).max(1)));
    }
    Sample::whole(frame)
}
