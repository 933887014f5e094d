//! The proof that the socket sees packets: a SYN to port 0 of the loopback, which no listener can have. Its TCP checksum is
//! wrong, so that the kernel drops it without an answer, after the socket has seen it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

use crate::drive::clock;

/// The kernel hands a packet to the loopback at once, or from a thread of its own when it is busy.
const PATIENCE: Duration = Duration::from_millis(200);

/// An IPv4 packet from and to 127.0.0.1. The kernel fills in what is zero of the IP header but the addresses (`raw(7)`).
const SYN_TO_PORT_0: [u8; 40] = {
    let mut packet = [0; 40];
    packet[0] = 0x45; // version 4, 5 words of header
    packet[8] = 64; // time to live
    packet[9] = 6; // TCP
    packet[12] = 127;
    packet[15] = 1;
    packet[16] = 127;
    packet[19] = 1;
    packet[32] = 0x50; // 5 words of header
    packet[33] = 0x02; // SYN
    packet[36] = 0xff; // no sum of this packet
    packet[37] = 0xff;
    packet
};

/// Sends the test's packets.
pub(super) struct OwnTest(Socket);

/// The sensor is not proven.
#[derive(Debug, thiserror::Error)]
pub enum OwnTestError {
    /// No socket.
    #[error("no raw socket to send a test packet to the loopback: {0}")]
    Open(#[source] io::Error),
    /// Not sent.
    #[error("the test packet was not sent to 127.0.0.1 ({0}); is the pod's loopback interface up?")]
    Send(#[source] io::Error),
    /// Nothing can be received.
    #[error("the packet socket cannot be read: {0}")]
    Receive(#[source] io::Error),
    /// It was sent and not seen.
    #[error("the packet socket has not seen the test packet on the loopback within {PATIENCE:?}")]
    NotSeen,
}

impl OwnTest {
    pub(super) fn open() -> Result<Self, OwnTestError> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)));
        socket.map(Self).map_err(OwnTestError::Open)
    }

    /// Sends a packet, and waits until `seen` shows more than before; in between for what `more` waits for.
    pub(super) fn run(
        &self,
        seen: impl Fn() -> Result<u64, OwnTestError>,
        more: impl Fn() -> Result<(), OwnTestError>,
    ) -> Result<(), OwnTestError> {
        let before = seen()?;
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        self.0.send_to(&SYN_TO_PORT_0, &loopback.into()).map_err(OwnTestError::Send)?;
        let began = clock::now();
        while seen()? <= before {
            if clock::now().since(began) >= PATIENCE {
                return Err(OwnTestError::NotSeen);
            }
            more()?;
        }
        Ok(())
    }
}
