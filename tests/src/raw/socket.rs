//! Packet sockets: frames in and out of an interface, past the kernel's own IP.

use std::{
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use super::{Observed, Segment};
use crate::{Host, clock::Deadline};

/// Every protocol (`ETH_P_ALL`).
const EVERYTHING: u16 = 0x0003;
/// None: nothing is received.
const NOTHING: u16 = 0;
/// A larger frame is cut off when it is observed; headers are all that is looked at.
const OBSERVED_BYTES: usize = 2048;
/// Room for a flood to be observed.
const RECEIVE_BUFFER: usize = 8 << 20;

/// Sends frames out of an interface of a host.
#[derive(Debug)]
pub struct Sender(Socket);

/// Observes the frames that an interface of a host receives and sends, from when it is opened.
#[derive(Debug)]
pub struct Capture {
    socket: Socket,
    interface: String,
}

// === impl Sender ===

impl Sender {
    /// A sender for an interface.
    ///
    /// # Errors
    ///
    /// When the host has no such interface.
    pub fn open(host: &Host, interface: &str) -> Result<Self> {
        packet_socket(host, interface, NOTHING).map(Self)
    }

    /// Sends a segment as it is.
    ///
    /// # Errors
    ///
    /// When the interface is down, or the frame is larger than it takes.
    pub fn send(&self, segment: &Segment) -> Result<()> {
        self.send_frame(&segment.to_frame())
    }

    /// Sends the bytes of a frame, beginning with the hardware addresses.
    ///
    /// # Errors
    ///
    /// When the interface is down, or the frame is larger than it takes.
    pub fn send_frame(&self, frame: &[u8]) -> Result<()> {
        (&self.0).write_all(frame).with_context(|| format!("a frame of {} bytes was not sent", frame.len()))
    }
}

// === impl Capture ===

impl Capture {
    /// Begins to observe an interface.
    ///
    /// # Errors
    ///
    /// When the host has no such interface.
    pub fn open(host: &Host, interface: &str) -> Result<Self> {
        let socket = packet_socket(host, interface, EVERYTHING)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        Ok(Self { socket, interface: interface.to_owned() })
    }

    /// The next frame, from its hardware addresses on; `None` when there was none within the time.
    ///
    /// # Errors
    ///
    /// When the interface is gone.
    pub fn next_frame(&self, within: Duration) -> Result<Option<Vec<u8>>> {
        let deadline = Deadline::after(within);
        let mut frame = vec![0; OBSERVED_BYTES];
        loop {
            // Zero would mean no limit.
            self.socket.set_read_timeout(Some(deadline.left().max(Duration::from_micros(1))))?;
            match (&self.socket).read(&mut frame) {
                Ok(length) => {
                    frame.truncate(length);
                    return Ok(Some(frame));
                }
                Err(error) => match error.kind() {
                    // The kernel does not resume a read with a time limit by itself.
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(None),
                    _ => return Err(error).with_context(|| format!("{} is not observed any more", self.interface)),
                },
            }
        }
    }

    /// The next TCP segment with all of `flags` set from one address to another; either may be left open.
    ///
    /// # Errors
    ///
    /// When there was none within the time.
    pub fn await_segment(
        &self,
        flags: u8,
        from: Option<SocketAddr>,
        to: Option<SocketAddr>,
        within: Duration,
    ) -> Result<Observed> {
        let deadline = Deadline::after(within);
        while let Some(frame) = self.next_frame(deadline.left())? {
            if let Some(segment) = Observed::parse(&frame)
                && segment.flags & flags == flags
                && from.is_none_or(|from| segment.source == from)
                && to.is_none_or(|to| segment.destination == to)
            {
                return Ok(segment);
            }
            if deadline.passed() {
                break;
            }
        }
        Err(anyhow!(
            "no segment with flags {flags:#04x} from {from:?} to {to:?} on {} within {within:?}",
            self.interface
        ))
    }
}

fn packet_socket(host: &Host, interface: &str, protocol: u16) -> Result<Socket> {
    let open = || -> Result<Socket> {
        // Without a protocol until it is bound, so that nothing of other interfaces is received.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
        let index = name_to_index(&socket, interface)?;
        socket.bind(&link_address(index, protocol)?)?;
        Ok(socket)
    };
    host.run(open).with_context(|| format!("no packet socket on {interface} of {}", host.role()))
}

/// The address of an interface for a packet socket (`packet(7)`).
#[expect(unsafe_code, reason = "no crate here builds the address of a packet socket")]
fn link_address(index: u32, protocol: u16) -> Result<SockAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is one of the socket address types, which a storage is large and aligned enough for, and all its
    // fields are integers, for which zeros are valid.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = u16::try_from(libc::AF_PACKET)?;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = i32::try_from(index)?;
    let length = u32::try_from(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: the storage holds a valid address of this length, whose family is set.
    Ok(unsafe { SockAddr::new(storage, length) })
}
