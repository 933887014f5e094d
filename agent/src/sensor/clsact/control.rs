//! Traffic control over rtnetlink: queueing disciplines and filters at the ingress of an interface (`tc(8)`,
//! `tc-bpf(8)`).

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::{
    RouteNetlinkMessage,
    tc::{TcAttribute, TcBpfFlags, TcFilterBpfOption, TcHandle, TcMessage, TcOption},
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// Larger than what the kernel puts into one part of a dump (`NLMSG_GOODSIZE`, at most 32 KiB).
const RECEIVE_BUFFER: usize = 64 * 1024;
/// `RTMGRP_TC` in `linux/rtnetlink.h`.
const CHANGES: u32 = 8;
/// `ETH_P_ALL`: filters for every protocol.
const EVERYTHING: u16 = 0x0003;
/// The kind of a BPF filter.
const BPF: &str = "bpf";
/// The kind of the queueing discipline.
const CLSACT: &str = "clsact";

/// Where a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ingress,
    Egress,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    pub(super) priority: u16,
    pub(super) handle: u32,
    /// The name of a BPF filter.
    pub(super) name: Option<String>,
    /// The number of its program.
    pub(super) program: Option<u32>,
}

/// A change of the filters or of the discipline at the ingress of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) interface: u32,
    /// The name of the BPF filter that came or went.
    pub(super) name: Option<String>,
}

/// A conversation with the kernel.
pub(super) struct Control {
    socket: Socket,
    changes: Socket,
}

impl Control {
    /// Opens it in the caller's namespace. Changes are told from now on.
    pub(super) fn open() -> io::Result<Self> {
        let mut changes = Socket::new(NETLINK_ROUTE)?;
        changes.bind(&SocketAddr::new(0, CHANGES))?;
        changes.set_non_blocking(true)?;
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, changes })
    }

    /// Adds the discipline; `false` if there is one, whoever's.
    pub(super) fn add_clsact(&self, interface: u32) -> io::Result<bool> {
        let message = RouteNetlinkMessage::NewQueueDiscipline(clsact(interface));
        match self.ask(message, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes it, with every filter that is there.
    pub(super) fn remove_clsact(&self, interface: u32) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::DelQueueDiscipline(clsact(interface)), NLM_F_ACK).map(drop)
    }

    /// Adds a BPF filter at the ingress, whose program says what becomes of a packet. It comes before the others of its
    /// priority (`cls_bpf_change` in `net/sched/cls_bpf.c`).
    pub(super) fn add(&self, interface: u32, priority: u16, handle: u32, name: &str, program: i32) -> io::Result<()> {
        let mut message = filter(interface, priority, handle);
        let options = [
            TcFilterBpfOption::ProgFd(program.cast_unsigned()),
            TcFilterBpfOption::ProgName(name.to_owned()),
            TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
        ];
        message.attributes = vec![
            TcAttribute::Kind(BPF.to_owned()),
            TcAttribute::Options(options.into_iter().map(TcOption::Bpf).collect()),
        ];
        self.ask(RouteNetlinkMessage::NewTrafficFilter(message), NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }

    /// Removes a BPF filter from the ingress.
    pub(super) fn remove(&self, interface: u32, priority: u16, handle: u32) -> io::Result<()> {
        let mut message = filter(interface, priority, handle);
        message.attributes = vec![TcAttribute::Kind(BPF.to_owned())];
        self.ask(RouteNetlinkMessage::DelTrafficFilter(message), NLM_F_ACK).map(drop)
    }

    /// The filters in the order in which packets meet them. Those of further chains, to which a filter can jump, are left
    /// out.
    pub(super) fn filters(&self, interface: u32, side: Side) -> io::Result<Vec<Filter>> {
        let mut message = TcMessage::with_index(interface.cast_signed());
        message.header.parent = side.parent();
        let answers = self.ask(RouteNetlinkMessage::GetTrafficFilter(message), NLM_F_DUMP)?;
        Ok(answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewTrafficFilter(message) => in_first_chain(&message),
                _ => None,
            })
            .collect())
    }

    /// Which changes there were since the last time; `None` if the kernel had no room to tell of all.
    pub(super) fn changes(&self) -> Option<Vec<Change>> {
        let mut changes = Some(Vec::new());
        loop {
            match receive(&self.changes) {
                Ok(messages) => {
                    let told = messages.into_iter().filter_map(|message| change(&message));
                    if let Some(changes) = &mut changes {
                        changes.extend(told);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return changes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No room (ENOBUFS), or something that cannot be read: there may have been any change.
                Err(_) => changes = None,
            }
        }
    }

    fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            for payload in receive(&self.socket)? {
                match payload {
                    NetlinkPayload::InnerMessage(message) => answers.push(message),
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answers),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }
}

impl Side {
    fn parent(self) -> TcHandle {
        let minor = match self {
            Self::Ingress => TcHandle::MIN_INGRESS,
            Self::Egress => TcHandle::MIN_EGRESS,
        };
        TcHandle { major: TcHandle::CLSACT.major, minor }
    }
}

fn clsact(interface: u32) -> TcMessage {
    let mut message = TcMessage::with_index(interface.cast_signed());
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle { major: TcHandle::CLSACT.major, minor: 0 };
    message.attributes = vec![TcAttribute::Kind(CLSACT.to_owned())];
    message
}

fn filter(interface: u32, priority: u16, handle: u32) -> TcMessage {
    let mut message = TcMessage::with_index(interface.cast_signed());
    message.header.parent = Side::Ingress.parent();
    message.header.handle = handle.into();
    message.header.info = u32::from(priority) << 16 | u32::from(EVERYTHING.to_be());
    message
}

/// A filter of the chain with which packets begin. The kernel lists each priority once more by itself, with no handle.
fn in_first_chain(message: &TcMessage) -> Option<Filter> {
    let in_other_chain = message.attributes.iter().any(|attribute| matches!(attribute, TcAttribute::Chain(1..)));
    let handle = u32::from(message.header.handle);
    if in_other_chain || handle == 0 {
        return None;
    }
    let priority = u16::try_from(message.header.info >> 16).ok()?;
    let program = options(message).find_map(|option| match option {
        TcFilterBpfOption::ProgId(program) => Some(*program),
        _ => None,
    });
    Some(Filter { priority, handle, name: name(message), program })
}

fn options(message: &TcMessage) -> impl Iterator<Item = &TcFilterBpfOption> {
    let options = message.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    options.flatten().filter_map(|option| match option {
        TcOption::Bpf(option) => Some(option),
        _ => None,
    })
}

fn name(message: &TcMessage) -> Option<String> {
    options(message).find_map(|option| match option {
        TcFilterBpfOption::ProgName(name) => Some(name.clone()),
        _ => None,
    })
}

fn change(payload: &NetlinkPayload<RouteNetlinkMessage>) -> Option<Change> {
    let NetlinkPayload::InnerMessage(message) = payload else { return None };
    let (message, concerns) = match message {
        RouteNetlinkMessage::NewTrafficFilter(message) | RouteNetlinkMessage::DelTrafficFilter(message) => {
            (message, message.header.parent != Side::Egress.parent())
        }
        RouteNetlinkMessage::NewQueueDiscipline(message) | RouteNetlinkMessage::DelQueueDiscipline(message) => {
            (message, message.header.parent == TcHandle::CLSACT)
        }
        _ => return None,
    };
    concerns.then(|| Change { interface: message.header.index.cast_unsigned(), name: name(message) })
}

/// One datagram's messages.
fn receive(socket: &Socket) -> io::Result<Vec<NetlinkPayload<RouteNetlinkMessage>>> {
    let mut buffer = Vec::with_capacity(RECEIVE_BUFFER);
    socket.recv(&mut buffer, 0)?;
    let mut rest = buffer.as_slice();
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let message = <NetlinkMessage<RouteNetlinkMessage>>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let length = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
        messages.push(message.payload);
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    Ok(messages)
}
