//! The packet socket (`packet(7)`): what it has received, and what it had no room for.

#![expect(unsafe_code, reason = "two socket options of packet sockets, for which no crate here has a function")]

use std::{
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use socket2::{Domain, Protocol, Socket, Type};

use super::filter;

/// Every protocol (`ETH_P_ALL`), in network order.
const EVERYTHING: i32 = 0x0003_u16.to_be() as i32;
/// `SOL_PACKET` in `linux/socket.h`.
const PACKET: libc::c_int = 263;
/// `PACKET_STATISTICS` in `linux/if_packet.h`.
const STATISTICS: libc::c_int = 6;
/// `PACKET_IGNORE_OUTGOING` in `linux/if_packet.h` (Linux 4.20).
const IGNORE_OUTGOING: libc::c_int = 23;
/// What is asked for; the kernel gives what `net.core.rmem_max` allows.
const RECEIVE_BUFFER: usize = 4 << 20;
/// No packet takes less of the buffer than this: `struct sk_buff` alone is as large.
const LEAST_TRUE_SIZE: usize = 224;

/// The socket.
pub(super) struct PacketSocket {
    socket: Socket,
    /// How many frames it can hold.
    room: usize,
}

/// `struct tpacket_stats` in `linux/if_packet.h`.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    packets: u32,
    drops: u32,
}

impl PacketSocket {
    /// Opens it in the caller's namespace, for the SYNs of every interface. Needs `CAP_NET_RAW`.
    pub(super) fn open() -> io::Result<Self> {
        // Without the link header, so that an interface without Ethernet frames is like any other.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(EVERYTHING)))?;
        socket.attach_filter(&filter::program())?;
        socket.set_nonblocking(true)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        let room = socket.recv_buffer_size()? / LEAST_TRUE_SIZE + 1;
        let opened = Self { socket, room };
        if let Err(error) = opened.ignore_outgoing() {
            // The filter leaves them out as well; the kernel makes a copy of each first.
            tracing::debug!(%error, "packets that the pod sends pass the sensor's filter too");
        }
        // What came before the filter was in place.
        let mut buffer = [0; 1];
        while matches!(opened.receive(&mut buffer), Ok(Some(_))) {}
        opened.dropped()?;
        Ok(opened)
    }

    /// How many frames it can hold: after so many, all that were there at the beginning have been received.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// The next frame; `None` if there is none.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.socket).read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// How many frames there was no room for since the last time.
    pub(super) fn dropped(&self) -> io::Result<u64> {
        let mut statistics = Statistics::default();
        let mut length = libc::socklen_t::try_from(size_of::<Statistics>()).unwrap_or(0);
        // SAFETY: the option's value has this layout and length, and both live through the call.
        let result = unsafe {
            let value = std::ptr::from_mut(&mut statistics).cast();
            libc::getsockopt(self.socket.as_raw_fd(), PACKET, STATISTICS, value, &raw mut length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(statistics.drops.into()) }
    }

    /// Waits until there is a frame, at most for so long.
    pub(super) fn wait(&self, at_most: Option<Timespec>) -> io::Result<()> {
        match poll(&mut [PollFd::new(self, PollFlags::IN)], at_most.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn ignore_outgoing(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(0);
        // SAFETY: the option's value is a number, which lives through the call.
        let result = unsafe {
            let value = std::ptr::from_ref(&on).cast();
            libc::setsockopt(self.socket.as_raw_fd(), PACKET, IGNORE_OUTGOING, value, length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
