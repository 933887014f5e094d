//! Questions to the kernel that it answers with everything of a kind: netlink's dumps (`netlink(7)`).

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Larger than what the kernel puts into one part of a dump (`NLMSG_GOODSIZE`, at most 32 KiB).
const RECEIVE_BUFFER: usize = 64 * 1024;

/// An open conversation with one of the kernel's netlink protocols.
pub(crate) struct Dump {
    socket: Socket,
    protocol: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DumpError {
    #[error("cannot open a {protocol} socket: {source}")]
    Open { protocol: &'static str, source: io::Error },
    #[error("the kernel did not answer a {protocol} request: {source}")]
    Exchange { protocol: &'static str, source: io::Error },
    #[error("the kernel refused a {protocol} request: {source}")]
    Refused { protocol: &'static str, source: io::Error },
    #[error("the kernel's {protocol} answer cannot be read: {why}")]
    Decode { protocol: &'static str, why: String },
}

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Answer {
    /// It shows one moment, or a table whose entries come and go while it is walked.
    Whole,
    /// What was asked for changed meanwhile (`NLM_F_DUMP_INTR`): some of it may be missing.
    Torn,
}

impl Dump {
    /// Opens one. `name` is what messages call the protocol.
    pub(crate) fn open(protocol: isize, name: &'static str) -> Result<Self, DumpError> {
        let open = |source| DumpError::Open { protocol: name, source };
        let mut socket = Socket::new(protocol).map_err(open)?;
        socket.bind_auto().map_err(open)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(open)?;
        Ok(Self { socket, protocol: name })
    }

    /// Asks, and calls `found` for every message of the answer.
    pub(crate) fn each<M>(&mut self, request: M, mut found: impl FnMut(M)) -> Result<Answer, DumpError>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| self.not_answered(source))?;
        let mut answer = Answer::Whole;
        while self.part(&mut found, &mut answer)? {}
        Ok(answer)
    }

    /// Takes one part of the answer; `false` after the last.
    fn part<M: NetlinkDeserializable>(
        &mut self,
        found: &mut impl FnMut(M),
        answer: &mut Answer,
    ) -> Result<bool, DumpError> {
        let protocol = self.protocol;
        let mut buffer = Vec::with_capacity(RECEIVE_BUFFER);
        self.socket.recv(&mut buffer, 0).map_err(|source| self.not_answered(source))?;
        let mut rest = buffer.as_slice();
        while !rest.is_empty() {
            let message = <NetlinkMessage<M>>::deserialize(rest)
                .map_err(|error| DumpError::Decode { protocol, why: error.to_string() })?;
            let length = usize::try_from(message.header.length).unwrap_or(usize::MAX).next_multiple_of(4);
            if message.header.flags & NLM_F_DUMP_INTR != 0 {
                *answer = Answer::Torn;
            }
            match message.payload {
                NetlinkPayload::InnerMessage(message) => found(message),
                NetlinkPayload::Done(_) => return Ok(false),
                NetlinkPayload::Error(error) => return Err(DumpError::Refused { protocol, source: error.to_io() }),
                _ => {}
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
        Ok(true)
    }

    fn not_answered(&self, source: io::Error) -> DumpError {
        DumpError::Exchange { protocol: self.protocol, source }
    }
}
