//! The kernel's notifications of interfaces that come, go or change (`RTNLGRP_LINK`, `rtnetlink(7)`).
//!
//! What they say is not read: that there is one is enough to look at all interfaces, and so nothing is lost when the
//! kernel drops some for want of room.

use std::{io, time::Duration};

use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE};

/// `RTMGRP_LINK` in `linux/rtnetlink.h`.
const LINKS: u32 = 1;

/// Where notifications cannot be had, interfaces are looked at this often.
const INSTEAD: Duration = Duration::from_secs(1);

/// Waits for changes of the interfaces of the namespace in which it was made.
pub struct LinkChanges {
    socket: Option<TokioSocket>,
}

impl LinkChanges {
    /// From now on. Never fails: without notifications a change is assumed every second.
    pub fn open() -> Self {
        let socket = subscribe().inspect_err(|error| {
            tracing::warn!(%error, "the kernel does not tell of new interfaces; they are looked for every second");
        });
        Self { socket: socket.ok() }
    }

    /// Waits until something has changed since the last time. Nothing is lost if it is dropped in between.
    pub async fn next(&mut self) {
        if let Some(socket) = &mut self.socket {
            let mut outcome = socket.recv(&mut buffer().as_mut_slice()).await;
            // All that have come by now.
            while outcome.is_ok() || lost_some(&outcome) {
                outcome = socket.socket_ref().recv(&mut buffer().as_mut_slice(), 0).map(drop);
            }
            match outcome {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    tracing::warn!(%error, "the kernel does not tell of new interfaces any more");
                    self.socket = None;
                }
                _ => return,
            }
        }
        tokio::time::sleep(INSTEAD).await;
    }
}

fn subscribe() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, LINKS))?;
    Ok(socket)
}

/// The kernel cuts off what does not fit.
fn buffer() -> [u8; 16] {
    [0; 16]
}

/// The kernel had no room for some: there were more.
fn lost_some(outcome: &io::Result<()>) -> bool {
    outcome.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOBUFS))
}
