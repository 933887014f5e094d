//! A TCP segment in an IP packet in an Ethernet frame, each field at will.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The sender has no more to send.
pub const FIN: u8 = 0x01;
/// A connection is asked for.
pub const SYN: u8 = 0x02;
/// A connection is refused or broken off.
pub const RST: u8 = 0x04;
/// Data that should not wait.
pub const PSH: u8 = 0x08;
/// The acknowledgment number is valid.
pub const ACK: u8 = 0x10;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_VLAN: u16 = 0x8100;
const PROTOCOL_TCP: u8 = 6;
const HEADER_AUTHENTICATION: u8 = 51;
/// Maximum segment size, 1460 bytes: what an Ethernet's client offers.
const OPTION_MSS: [u8; 4] = [2, 4, 0x05, 0xb4];

/// What is put in the TCP checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// The sum, so that a kernel takes the segment.
    #[default]
    Right,
    /// Something else, so that it drops it.
    Wrong,
}

/// An IPv6 extension header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionHeader {
    /// Its protocol number: 0 hop-by-hop, 43 routing, 44 fragment, 51 authentication, 60 destination options.
    pub kind: u8,
    /// What follows its first two bytes, which are the next header and the length; padded with zeros to whole 8 bytes.
    pub body: Vec<u8>,
}

/// A segment and how it is packed. The family is that of the two addresses; [`Segment::to_frame`] gives the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The sender's hardware address.
    pub source_hardware: [u8; 6],
    /// The receiver's hardware address.
    pub destination_hardware: [u8; 6],
    /// 802.1Q tags (priority and VLAN id), outermost first.
    pub vlans: Vec<u16>,
    /// The sender's address and port.
    pub source: SocketAddr,
    /// The receiver's address and port.
    pub destination: SocketAddr,
    /// IPv4 only: flags and fragment offset. `0x4000` forbids fragmenting, `0x2000` says that more fragments come, the low
    /// 13 bits count in 8 bytes.
    pub fragment: u16,
    /// IPv4 only: options, padded with zeros to whole 4 bytes; at most 40.
    pub ip_options: Vec<u8>,
    /// IPv6 only: extension headers, outermost first.
    pub extension_headers: Vec<ExtensionHeader>,
    /// TCP sequence number.
    pub sequence: u32,
    /// TCP acknowledgment number, valid with [`ACK`].
    pub acknowledgment: u32,
    /// TCP flags, any eight bits.
    pub flags: u8,
    /// TCP window in bytes.
    pub window: u16,
    /// TCP options, padded with zeros to whole 4 bytes; at most 40.
    pub tcp_options: Vec<u8>,
    /// The data.
    pub payload: Vec<u8>,
    /// The TCP checksum.
    pub checksum: Checksum,
}

// === impl Segment ===

impl Segment {
    /// A valid SYN, from and to hardware addresses of zero, with a sequence number made of its source.
    pub fn syn(source: SocketAddr, destination: SocketAddr) -> Self {
        Self {
            source_hardware: [0; 6],
            destination_hardware: [0; 6],
            vlans: Vec::new(),
            source,
            destination,
            fragment: 0x4000,
            ip_options: Vec::new(),
            extension_headers: Vec::new(),
            sequence: u32::from(source.port()) << 16 | 1,
            acknowledgment: 0,
            flags: SYN,
            window: 64_240,
            tcp_options: OPTION_MSS.to_vec(),
            payload: Vec::new(),
            checksum: Checksum::Right,
        }
    }

    /// A data segment that belongs to no connection.
    pub fn data(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Self {
        Self {
            flags: PSH | ACK,
            acknowledgment: 1,
            tcp_options: Vec::new(),
            payload: payload.to_vec(),
            ..Self::syn(source, destination)
        }
    }

    /// The same between other hardware addresses.
    #[must_use]
    pub fn between(self, source_hardware: [u8; 6], destination_hardware: [u8; 6]) -> Self {
        Self { source_hardware, destination_hardware, ..self }
    }

    /// The frame's bytes, without the check sequence that hardware adds. Lengths that do not fit their fields are cut off
    /// to them, as a broken sender would.
    ///
    /// IPv6 is used where either address is of IPv6; the other is then mapped.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut frame = [self.destination_hardware, self.source_hardware].concat();
        for tag in &self.vlans {
            frame.extend(TYPE_VLAN.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend(TYPE_IPV4.to_be_bytes());
                frame.extend(self.ipv4(source, destination));
            }
            (source, destination) => {
                frame.extend(TYPE_IPV6.to_be_bytes());
                frame.extend(self.ipv6(mapped(source), mapped(destination)));
            }
        }
        frame
    }

    /// The frames of a segment over IPv4 in two fragments, of which the first has so many bytes of TCP: a multiple of 8. IP
    /// options are left out.
    pub fn in_fragments(&self, first: usize) -> Vec<Vec<u8>> {
        const HEADERS: usize = 14 + 20;
        let whole = Self { ip_options: Vec::new(), vlans: Vec::new(), ..self.clone() }.to_frame();
        let (headers, tcp) = whole.split_at(HEADERS.min(whole.len()));
        let (head, tail) = tcp.split_at(first.min(tcp.len()));
        let with = |field: u16, payload: &[u8]| {
            let mut frame = headers.to_vec();
            put(&mut frame, 16, u16::from_be_bytes(length_field(20 + payload.len())));
            put(&mut frame, 20, field);
            put(&mut frame, 24, 0);
            let sum = internet_checksum(&[frame.get(14..).unwrap_or_default()]);
            put(&mut frame, 24, sum);
            frame.extend(payload);
            frame
        };
        let rest = u16::from_be_bytes(length_field(first / 8));
        vec![with(0x2000, head), with(rest, tail)]
    }

    fn ipv4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
        let options = padded(&self.ip_options, 4);
        let tcp = self.tcp(&source.octets(), &destination.octets());
        let words = low_byte(5 + options.len() / 4);
        let mut packet = vec![0x40 | (words & 0x0f), 0];
        packet.extend(length_field(20 + options.len() + tcp.len()));
        packet.extend([0, 1]); // identification
        packet.extend(self.fragment.to_be_bytes());
        packet.extend([64, PROTOCOL_TCP, 0, 0]); // time to live, protocol, checksum
        packet.extend(source.octets());
        packet.extend(destination.octets());
        packet.extend(options);
        let sum = internet_checksum(&[&packet]);
        put(&mut packet, 10, sum);
        packet.extend(tcp);
        packet
    }

    fn ipv6(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
        let tcp = self.tcp(&source.octets(), &destination.octets());
        let kinds = self.extension_headers.iter().map(|header| header.kind).chain([PROTOCOL_TCP]);
        let headers: Vec<u8> = self
            .extension_headers
            .iter()
            .zip(kinds.clone().skip(1))
            .flat_map(|(header, next)| header.to_bytes(next))
            .collect();
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(length_field(headers.len() + tcp.len()));
        packet.extend(kinds.take(1));
        packet.push(64); // hop limit
        packet.extend(source.octets());
        packet.extend(destination.octets());
        packet.extend(headers);
        packet.extend(tcp);
        packet
    }

    fn tcp(&self, source: &[u8], destination: &[u8]) -> Vec<u8> {
        let options = padded(&self.tcp_options, 4);
        let words = low_byte(5 + options.len() / 4);
        let mut segment = Vec::new();
        segment.extend(self.source.port().to_be_bytes());
        segment.extend(self.destination.port().to_be_bytes());
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgment.to_be_bytes());
        segment.extend([words << 4, self.flags]);
        segment.extend(self.window.to_be_bytes());
        segment.extend([0; 4]); // checksum, urgent pointer
        segment.extend(options);
        segment.extend(&self.payload);
        // The pseudo header, which is the same sum for both families.
        let length = length_field(segment.len());
        let sum = internet_checksum(&[source, destination, &[0, PROTOCOL_TCP], &length, &segment]);
        let sum = match self.checksum {
            Checksum::Right => sum,
            Checksum::Wrong => sum ^ 0x5555,
        };
        put(&mut segment, 16, sum);
        segment
    }
}

// === impl ExtensionHeader ===

impl ExtensionHeader {
    fn to_bytes(&self, next: u8) -> Vec<u8> {
        let mut bytes = vec![next, 0];
        bytes.extend(&self.body);
        let mut bytes = padded(&bytes, 8);
        let length = match self.kind {
            HEADER_AUTHENTICATION => bytes.len() / 4 - 2,
            _ => bytes.len() / 8 - 1, // a fragment header has 8 bytes, and a zero here
        };
        if let Some(field) = bytes.get_mut(1) {
            *field = low_byte(length);
        }
        bytes
    }
}

/// The ones' complement of the ones' complement sum of 16-bit words (RFC 1071). All parts but the last have whole words.
fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2)).map(|word| match *word {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or_default()
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

fn padded(bytes: &[u8], unit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(unit), 0);
    bytes
}

fn length_field(length: usize) -> [u8; 2] {
    u16::try_from(length & 0xffff).unwrap_or_default().to_be_bytes()
}

fn low_byte(number: usize) -> u8 {
    u8::try_from(number & 0xff).unwrap_or_default()
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}
