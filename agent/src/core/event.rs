//! Everything the world can tell the core, and everything the core asks of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    class::Class,
    clock::Monotonic,
    cluster::{ClusterEvent, FenceRequest, ObservationId, ReadId},
    listener::{Family, Port},
    phase::Phase,
    termination::PodRead,
    verdict::{NotObserved, Strategy, Verdict},
};

/// One caller of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed: what [`poll_timeout`](super::drain::Core::poll_timeout) asked for.
    Clock,
    /// A hook was called. The first starts a drain, others join it.
    HookCalled {
        /// Whom to answer.
        caller: CallerId,
        /// Wall time, RFC 3339: for people, decides nothing.
        wall_time: String,
    },
    /// A caller went away without its answer. It ends nothing.
    HookLeft {
        /// Who.
        caller: CallerId,
    },
    /// SIGTERM.
    Terminate,
    /// The agent's own preStop hook was called (`lastsyn drain --mark`): the pod is terminating (S5).
    OwnHookCalled,
    /// S1: how long a drain may last has become known, as the pod's grace period has.
    MaxWaitKnown(Duration),
    /// What the cluster says, to the one who asked for it.
    Cluster(ObservationId, Arc<ClusterEvent>),
    /// What came of [`Action::ReadPod`].
    PodRead(ReadId, PodRead),
    /// What came of [`Action::Tell`]; in words, where it failed.
    Told(Phase, Result<(), String>),
    /// What the kernel shows, as asked for by [`Action::Read`] (or for somebody who looks: it is never too much).
    Evidence(Box<Evidence>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read the kernel's evidence now, and hand it in.
    Read(Depth),
    /// Count this port's attempts from now on.
    Watch(Port),
    /// List and watch the pod's slices, their Services and the nodes from now on, and ask the nodes' health servers.
    ObserveCluster(ObservationId),
    /// The drain is over: whatever was begun by [`Action::ObserveCluster`] is to end.
    ForgetCluster,
    /// S5: read the pod from the API server, consistently.
    ReadPod(ReadId),
    /// Tell the server in the pod. A server that does not answer ends or blocks no drain.
    Tell(Phase),
    /// C9: read the Services, their slices and (without a fence) the nodes from the API server, consistently.
    ReadConsistently(ReadId),
    /// C4: ask the fence for markers that are written from now on.
    AskFence(FenceRequest),
    /// Answer this caller.
    Answer(CallerId, Arc<Verdict>),
    /// Stop the agent.
    Exit,
}

/// What the kernel showed at one time. The parts are read in the order of the fields, each after the one before it, so
/// that whatever a later part lacks an earlier one cannot have caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The time before anything was read: all that happened before it is in.
    pub taken_at: Monotonic,
    /// The namespace's own TCP counters, or why they could not be read.
    pub namespace: Result<NamespaceCounters, String>,
    /// The sensor's state.
    pub sensor: SensorState,
    /// For how long, in all, an interface may have been up and not watched, as far as is known by now.
    pub blind: Duration,
    /// SYNs and packets that may be SYNs on any interface and port, in all; `None` without a sensor.
    pub attempts_anywhere: Option<u64>,
    /// What reached each port that is counted: a watched one that is missing here is not.
    pub attempts: BTreeMap<Port, PortAttempts>,
    /// What could not be parsed as far as its port, per family: it counts for every listener.
    pub unattributed: ByFamily<Tally>,
    /// The families that the pod has an address in, link-local aside.
    pub families: ByFamily<bool>,
    /// The socket table, or why it could not be read.
    pub sockets: Result<Sockets, String>,
    /// `Tcp: PassiveOpens` once more, after everything else: from here a comparison can begin. `None` if it could not be
    /// read.
    pub passive_opens_after: Option<u64>,
    /// What else could not be observed, with the reason.
    pub not_observed: Vec<NotObserved>,
}

/// One value for each family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByFamily<T> {
    /// IPv4.
    pub v4: T,
    /// IPv6.
    pub v6: T,
}

/// How many, and when the last one came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many since the port is watched.
    pub count: u64,
    /// When the last one came.
    pub last: Option<Monotonic>,
}

/// What reached one port over one family, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts([Tally; Class::ALL.len()]);

/// What reached one watched port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortAttempts {
    /// From when on it is counted.
    pub watched_since: Monotonic,
    /// The counts.
    pub families: ByFamily<Attempts>,
}

/// Whether the sensor is known to see everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SensorState {
    /// Its programs are in place on every interface, first in their chains, have passed their self-test, and the
    /// kernel's clock agrees with ours: all without a break since then.
    Proven {
        /// Where the counts come from.
        strategy: Strategy,
        /// Since when.
        since: Monotonic,
    },
    /// It is not, and why.
    Unproven {
        /// Where the counts come from.
        strategy: Strategy,
        /// For the operator.
        why: String,
    },
}

/// Counters of the network namespace that speak of connections opened from outside. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceCounters {
    /// `Tcp: PassiveOpens`: handshakes that were completed by a listener of this namespace.
    pub passive_opens: u64,
    /// SYNs that were dropped unanswered: `TcpExt: ListenDrops` (of which `ListenOverflows` are a part) and
    /// `TCPReqQFullDrop`.
    pub dropped: u64,
    /// `TcpExt: SyncookiesSent`: SYNs that were answered without leaving a trace in the socket table.
    pub cookies_sent: u64,
    /// `TcpExt: SyncookiesRecv`: the handshakes that were completed by such a cookie. Each is in `passive_opens` too, and
    /// is counted here first; that is why this is to be read after it.
    pub cookies_received: u64,
    /// `Tcp: OutRsts`: among them the answers to SYNs for closed ports.
    pub resets_sent: u64,
}

/// The socket table's view of the ports that can be reached from outside the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// The listening ports, and how many connections wait in each one's accept queue: all sockets of a `SO_REUSEPORT`
    /// group together.
    pub listeners: BTreeMap<Port, u64>,
    /// The connections, where they were asked for.
    pub connections: Option<Connections>,
}

/// The connections of the namespace. Reading them costs the kernel walks over the machine's whole table, one for each
/// family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Handshakes under way, by the kernel's own identity of each, with the port that they are for.
    pub handshakes: BTreeMap<HandshakeId, Port>,
    /// Established connections by local port, where they were asked for.
    pub established: Option<BTreeMap<Port, u64>>,
}

/// The kernel's identity of a handshake (`idiag_cookie`): never used twice while the machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandshakeId(pub u64);

/// How much of the socket table is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The listening sockets: cheap.
    Listeners,
    /// The handshakes under way too.
    Handshakes,
    /// The established connections too.
    Connections,
}

// === impl Sockets ===

impl Sockets {
    /// How deep the table was read.
    pub fn depth(&self) -> Depth {
        match &self.connections {
            None => Depth::Listeners,
            Some(Connections { established: None, .. }) => Depth::Handshakes,
            Some(Connections { established: Some(_), .. }) => Depth::Connections,
        }
    }
}

// === impl Evidence ===

impl Evidence {
    /// The families that quiet is asked about: those that the pod has an address in. With none there may be something
    /// wrong with how the addresses were read, so it is both.
    pub fn asked_families(&self) -> impl Iterator<Item = Family> {
        let none = !(self.families.v4 || self.families.v6);
        Family::ALL.into_iter().filter(move |family| none || *self.families.get(*family))
    }
}

// === impl ByFamily ===

impl<T> ByFamily<T> {
    /// The value of one family.
    pub fn get(&self, family: Family) -> &T {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    /// The value of one family, to change it.
    pub fn get_mut(&mut self, family: Family) -> &mut T {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}

// === impl Attempts ===

impl Attempts {
    /// Attempts by what each class has.
    pub fn of(each: impl FnMut(Class) -> Tally) -> Self {
        Self(Class::ALL.map(each))
    }

    /// The tally of one class.
    pub fn get(&self, class: Class) -> Tally {
        self.0.get(class as usize).copied().unwrap_or_default()
    }

    /// The tally of one class, to change it; `None` never, as every class has its place.
    pub fn get_mut(&mut self, class: Class) -> Option<&mut Tally> {
        self.0.get_mut(class as usize)
    }

    /// E2: when the last one came that counts.
    pub fn last(&self) -> Option<Monotonic> {
        Class::ALL.into_iter().filter(|class| class.counts()).filter_map(|class| self.get(class).last).max()
    }
}

// === impl SensorState ===

impl SensorState {
    /// Where the counts come from.
    pub fn strategy(&self) -> Strategy {
        match self {
            Self::Proven { strategy, .. } | Self::Unproven { strategy, .. } => *strategy,
        }
    }
}
