//! Dumps of the kernel's TCP and UDP sockets, one family and set of states at a time (`sock_diag(7)`).

use std::{io, net::IpAddr};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::{
    SockDiagMessage,
    constants::{AF_INET, AF_INET6, IPPROTO_TCP, IPPROTO_UDP},
    inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

/// Larger than what the kernel puts into one part of a dump (`NLMSG_GOODSIZE`, at most 32 KiB).
const RECEIVE_BUFFER: usize = 64 * 1024;

/// The state of a handshake under way, also where the kernel keeps no whole socket for it (`inet_req_diag_fill`).
const TCP_SYN_RECV: u8 = 3;

/// An open conversation with the kernel.
pub(super) struct Dump {
    socket: Socket,
}

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

#[derive(Debug, thiserror::Error)]
pub(super) enum DumpError {
    #[error("cannot open a sock_diag socket to see the pod's listeners: {0}")]
    Open(#[source] io::Error),
    #[error("the kernel did not answer a sock_diag request: {0}")]
    Exchange(#[source] io::Error),
    #[error("the kernel refused a sock_diag request: {0}")]
    Refused(#[source] io::Error),
    #[error("the kernel's sock_diag answer cannot be read: {0}")]
    Decode(String),
}

impl Dump {
    pub(super) fn open() -> Result<Self, DumpError> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG).map_err(DumpError::Open)?;
        socket.bind_auto().map_err(DumpError::Open)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(DumpError::Open)?;
        Ok(Self { socket })
    }

    /// Calls `found` for every socket of both families in these states.
    pub(super) fn each(&mut self, states: States, mut found: impl FnMut(DumpedSocket)) -> Result<(), DumpError> {
        for family in [AF_INET, AF_INET6] {
            self.request(family, states)?;
            while self.part(&mut found)? {}
        }
        Ok(())
    }

    fn request(&mut self, family: u8, states: States) -> Result<(), DumpError> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let request = InetRequest {
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
        };
        let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(DumpError::Exchange)?;
        Ok(())
    }

    /// Takes one part of the answer; `false` after the last.
    fn part(&mut self, found: &mut impl FnMut(DumpedSocket)) -> Result<bool, DumpError> {
        let mut buffer = Vec::with_capacity(RECEIVE_BUFFER);
        self.socket.recv(&mut buffer, 0).map_err(DumpError::Exchange)?;
        let mut rest = buffer.as_slice();
        while !rest.is_empty() {
            let message = <NetlinkMessage<SockDiagMessage>>::deserialize(rest)
                .map_err(|error| DumpError::Decode(error.to_string()))?;
            let length = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
            match message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => found(dumped(&response)),
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::Error(error) => return Err(DumpError::Refused(error.to_io())),
                _ => {}
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
        Ok(true)
    }
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
