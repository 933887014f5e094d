//! Dumps of the kernel's TCP and UDP sockets, one family and set of states at a time (`sock_diag(7)`).

use std::net::IpAddr;

use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP},
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags},
};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::netlink::{Dump, DumpError};

/// The state of a handshake under way, also where the kernel keeps no whole socket for it (`inet_req_diag_fill`).
const TCP_SYN_RECV: u8 = 3;

/// Which sockets are asked for. The kernel filters.
#[derive(Clone, Copy)]
pub(super) enum States {
    Listening,
    Handshakes,
    /// Handshakes under way and established connections, in one walk over the machine's whole table.
    Connections,
    /// UDP sockets without a peer.
    Unconnected,
}

/// One socket.
pub(super) struct DumpedSocket {
    pub(super) local: IpAddr,
    pub(super) local_port: u16,
    /// Its handshake is under way.
    pub(super) handshake: bool,
    pub(super) receive_queue: u32,
    pub(super) cookie: u64,
}

pub(super) fn open() -> Result<Dump, DumpError> {
    Dump::open(NETLINK_SOCK_DIAG, "sock_diag")
}

/// Calls `found` for every socket of both families in these states.
pub(super) fn each(dump: &mut Dump, states: States, mut found: impl FnMut(DumpedSocket)) -> Result<(), DumpError> {
    for family in [AF_INET, AF_INET6] {
        // Sockets come and go while the kernel walks over them, and it marks no such walk.
        let _whole = dump.each(request(family, states), |message| {
            if let SockDiagMessage::InetResponse(response) = message {
                found(dumped(&response));
            }
        })?;
    }
    Ok(())
}

fn request(family: u8, states: States) -> SockDiagMessage {
    SockDiagMessage::InetRequest(InetRequest {
        family,
        protocol: match states {
            States::Unconnected => IPPROTO_UDP,
            States::Listening | States::Handshakes | States::Connections => IPPROTO_TCP,
        },
        extensions: ExtensionFlags::empty(),
        states: match states {
            States::Listening => StateFlags::LISTEN,
            States::Handshakes => StateFlags::SYN_RECV,
            States::Connections => StateFlags::SYN_RECV | StateFlags::ESTABLISHED,
            States::Unconnected => StateFlags::CLOSE,
        },
        socket_id: if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() },
    })
}

fn dumped(response: &InetResponse) -> DumpedSocket {
    let id = &response.header.socket_id;
    DumpedSocket {
        local: id.source_address,
        local_port: id.source_port,
        handshake: response.header.state == TCP_SYN_RECV,
        receive_queue: response.header.recv_queue,
        cookie: u64::from_ne_bytes(id.cookie),
    }
}
