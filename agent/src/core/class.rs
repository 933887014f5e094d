//! What an attempt is, by what became of it in the kernel.

/// The class of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A SYN that a listener takes.
    New,
    /// A SYN whose handshake is under way: a retransmission, or a client that begins anew from the same port.
    Retransmit,
    /// A SYN for which there is no socket.
    Refused,
    /// A SYN of kubelet's probes.
    Probe,
    /// A SYN from a source in `listeners.ignoreSources`.
    Ignored,
    /// A SYN that asks to join an MPTCP connection as a further subflow.
    Join,
    /// A SYN on a flow that has a connection: it opens none.
    Stray,
    /// A packet that may be a SYN and could not be parsed that far.
    Opaque,
}

impl Class {
    /// All.
    pub const ALL: [Self; 8] =
        [Self::New, Self::Retransmit, Self::Refused, Self::Probe, Self::Ignored, Self::Join, Self::Stray, Self::Opaque];

    /// E2: whether such an attempt says that somebody still sends new connections here.
    pub const fn counts(self) -> bool {
        match self {
            Self::New | Self::Retransmit | Self::Refused | Self::Join | Self::Opaque => true,
            Self::Probe | Self::Ignored | Self::Stray => false,
        }
    }

    /// The name that verdicts and metrics use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Retransmit => "retransmit",
            Self::Refused => "refused",
            Self::Probe => "probe",
            Self::Ignored => "ignored",
            Self::Join => "join",
            Self::Stray => "stray",
            Self::Opaque => "opaque",
        }
    }
}
