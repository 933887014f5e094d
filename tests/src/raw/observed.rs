//! What an observed frame is, for plain TCP over IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A TCP segment that was seen on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The sender's address and port.
    pub source: SocketAddr,
    /// The receiver's address and port.
    pub destination: SocketAddr,
    /// TCP sequence number.
    pub sequence: u32,
    /// TCP acknowledgment number, valid with [`super::ACK`].
    pub acknowledgment: u32,
    /// TCP flags.
    pub flags: u8,
}

// === impl Observed ===

impl Observed {
    /// Reads a frame. `None` for anything but TCP, and for frames that a kernel's own TCP does not send: with VLAN tags,
    /// fragments, IPv6 extension headers.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (source, destination, tcp) = match (field(frame, 12)?, field(frame, 14)?) {
            ([0x08, 0x00], [version]) if version >> 4 == 4 => {
                let packet = frame.get(14..)?;
                let [protocol] = field(packet, 9)?;
                let source: [u8; 4] = field(packet, 12)?;
                let destination: [u8; 4] = field(packet, 16)?;
                let tcp = packet.get(usize::from(version & 0x0f) * 4..).filter(|_| protocol == 6)?;
                (IpAddr::from(Ipv4Addr::from(source)), IpAddr::from(Ipv4Addr::from(destination)), tcp)
            }
            ([0x86, 0xdd], [version]) if version >> 4 == 6 => {
                let packet = frame.get(14..)?;
                let [protocol] = field(packet, 6)?;
                let source: [u8; 16] = field(packet, 8)?;
                let destination: [u8; 16] = field(packet, 24)?;
                let tcp = packet.get(40..).filter(|_| protocol == 6)?;
                (IpAddr::from(Ipv6Addr::from(source)), IpAddr::from(Ipv6Addr::from(destination)), tcp)
            }
            _ => return None,
        };
        let [flags] = field(tcp, 13)?;
        Some(Self {
            source: SocketAddr::new(source, u16::from_be_bytes(field(tcp, 0)?)),
            destination: SocketAddr::new(destination, u16::from_be_bytes(field(tcp, 2)?)),
            sequence: u32::from_be_bytes(field(tcp, 4)?),
            acknowledgment: u32::from_be_bytes(field(tcp, 8)?),
            flags,
        })
    }
}

fn field<const LENGTH: usize>(bytes: &[u8], at: usize) -> Option<[u8; LENGTH]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{ACK, SYN, Segment};

    #[test]
    fn a_segment_is_read_back() {
        for (source, destination) in [("10.0.0.1:40000", "10.0.0.2:80"), ("[fd00::1]:40000", "[fd00::2]:80")] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let mut segment = Segment::syn(source, destination);
            segment.flags = SYN | ACK;
            segment.sequence = 0x0102_0304;
            segment.acknowledgment = 0xfffe_fdfc;
            segment.ip_options = vec![1, 1, 1];
            let frame = segment.to_frame();
            assert_eq!(
                Observed::parse(&frame),
                Some(Observed {
                    source,
                    destination,
                    sequence: 0x0102_0304,
                    acknowledgment: 0xfffe_fdfc,
                    flags: SYN | ACK
                })
            );
            // The flags are the last byte that is read.
            for length in 0..52 {
                assert_eq!(Observed::parse(&frame[..length]), None, "{length}");
            }
        }
    }
}
