//! The result of a drain: why it ended, on what evidence, and what could not be seen. These names are public: other
//! people's tools read them.

mod number_and_protocol;
mod sources;

use serde::{Deserialize, Serialize};

use super::{
    class::Class,
    listener::{Family, Port},
};
pub use sources::{Source, Sources};

/// Why the hook was let go. Stronger claims need stronger evidence; see each one. Other versions have other reasons, and
/// a hook lets go for those as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Quiet, and every Service that lists the pod is withdrawn, as every node has shown by evidence that follows from
    /// order alone; nothing is in `notObserved`. What it still rests on is in `assumes`.
    RoutedAway,
    /// As `routed-away`, but some nodes have shown it by evidence that needs a bound on somebody's lag: in `assumes`.
    Synced,
    /// No counting attempt for the quiet period on any watched listener and family, seen by a sensor that is known to
    /// see everything. Says nothing about routing.
    Quiet,
    /// Quiet as far as could be seen, but something was not observed: each such thing is in `notObserved`.
    Unverified,
    /// The pod is not terminating: only a container of it is restarted. Says nothing about connections.
    NotTerminating,
    /// `maxWait` passed first. What was still missing is in `holding`.
    Bound,
}

impl Reason {
    /// The name that verdicts, metrics and log lines use.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoutedAway => "routed-away",
            Self::Synced => "synced",
            Self::Quiet => "quiet",
            Self::Unverified => "unverified",
            Self::NotTerminating => "not-terminating",
            Self::Bound => "bound",
        }
    }
}

/// What a drain can be held by. Other versions have further ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// E1: `minWait` has not passed since the hook's call.
    Floor,
    /// E2: a counting attempt within `quietPeriod`.
    Quiet,
    /// E2a: a SYN was dropped unanswered within `retryWait`; its client will try again, here.
    Retry,
    /// E3: a connection waits in an accept queue, or a handshake is under way.
    Handshakes,
    /// E4: more established connections than `exitAtConnections`.
    Connections,
    /// E5: somebody still has a reason to send connections to the pod, or a node has not shown that it has none.
    Routing,
    /// E6: a load balancer may still send to this node.
    LoadBalancer,
}

impl Condition {
    /// All, in the order of the rules.
    pub const ALL: [Self; 7] =
        [Self::Floor, Self::Quiet, Self::Retry, Self::Handshakes, Self::Connections, Self::Routing, Self::LoadBalancer];
}

/// A drain's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Why it ended.
    pub reason: Reason,
    /// Wall-clock time of the hook's call, RFC 3339 in UTC. For people: nothing is decided by it.
    pub started_at: String,
    /// From the hook's call to the end, on the monotonic clock.
    pub duration_ms: u64,
    /// For how long each condition held the end.
    pub held_by: HeldBy,
    /// What still held when the bound was reached; empty for any other reason.
    #[serde(default)]
    pub holding: Vec<Condition>,
    /// Every watched listener.
    pub listeners: Vec<Listener>,
    /// What was known of the cluster; `null` where it was not watched.
    #[serde(default)]
    pub routing: Option<Routing>,
    /// Bounds on somebody's lag that the reason rests on.
    pub assumes: Vec<String>,
    /// What could lead to the pod and was not seen.
    pub not_observed: Vec<NotObserved>,
    /// Where the counts come from.
    pub sensor: Sensor,
    /// Who sent the attempts, for people: nothing is decided by it. `null` where it was not kept.
    #[serde(default)]
    pub sources: Option<Sources>,
    /// What came after the end; `null` in the answer to the hook, which is given before that is known. The agent's
    /// status and its last log line have it.
    #[serde(default)]
    pub late: Option<Late>,
}

/// S7: attempts that came after a drain's end, up to the last reading. That none came is evidence that the drain was long
/// enough, and no proof: see [`Late::observed_for_ms`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Late {
    /// SYNs that met a listener or a handshake under way.
    pub taken: u64,
    /// SYNs that met no socket: clients that were let down.
    pub refused: u64,
    /// Packets that may have been SYNs and could not be parsed that far.
    pub opaque: u64,
    /// How long after the end the last of them came; `null` if none did.
    pub last_after_ms: Option<u64>,
    /// For how long it was watched, by a sensor that is known to see every SYN, since the last listener closed; 0 while
    /// one is open.
    pub observed_for_ms: u64,
}

/// For how long each condition was unmet, from the hook's call to the last time it was seen so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HeldBy {
    /// E1.
    pub floor_ms: u64,
    /// E2.
    pub quiet_ms: u64,
    /// E2a.
    pub retry_ms: u64,
    /// E3.
    pub handshakes_ms: u64,
    /// E4.
    pub connections_ms: u64,
    /// E5.
    pub routing_ms: u64,
    /// E6.
    pub load_balancer_ms: u64,
}

/// What was known of the cluster's routing to the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Routing {
    /// Every Service port and family that has listed the pod.
    pub services: Vec<Route>,
    /// How many nodes, summed over the families that the pod is listed in.
    pub nodes: Nodes,
    /// What each node has shown, where it has shown anything.
    pub evidence: Vec<NodeEvidence>,
    /// What became of the fence; absent where none is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<FenceTold>,
}

/// What became of the fence in a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FenceTold {
    /// It answered when it was last heard of.
    pub answers: bool,
    /// Why not, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// One Service port and family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The Service's name.
    pub name: String,
    /// Its port's name; empty for the unnamed one.
    pub port: String,
    /// The family.
    pub family: Family,
    /// Whether it leads to the pod.
    pub state: RouteState,
    /// When it was withdrawn, from the hook's call.
    pub since_ms: Option<u64>,
}

/// Whether a Service port and family leads to the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteState {
    /// Somebody has a reason to send connections.
    Routed,
    /// Nothing observable routes to the pod any more.
    Withdrawn,
}

/// How many nodes are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nodes {
    /// All.
    pub total: u64,
    /// Confirmed by the fence.
    pub confirmed: u64,
    /// Confirmed by what rests on a bound.
    pub assumed: u64,
    /// Only waited for.
    pub waited: u64,
    /// Still awaited.
    pub pending: u64,
    /// They show nothing.
    pub unobservable: u64,
}

/// What one node has shown over one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeEvidence {
    /// The node.
    pub node: String,
    /// The family.
    pub family: Family,
    /// The kind of evidence: `fence`, `syncs`, `settled`, `waited`.
    pub by: String,
    /// What it rests on.
    pub assumes: Vec<String>,
}

/// One watched port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// The port; written as its number (`port`) and its protocol (`protocol`, `TCP` or `UDP`).
    #[serde(flatten, with = "number_and_protocol")]
    pub port: Port,
    /// When it was first seen without a socket, counted from the hook's call (0: by then); `null` while it has one.
    pub closed_at_ms: Option<u64>,
    /// What reached it, per family that the pod has an address in.
    pub families: Vec<FamilyCounts>,
}

/// Attempts that reached one listener over one family: since the hook's call in a verdict and while a drain runs, since
/// the port is watched otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyCounts {
    /// The family.
    pub family: Family,
    /// SYNs that a listener took, and datagrams that open a QUIC connection; `null`, here and in what follows, where nothing
    /// counts them one by one (the strategy `counters`).
    pub new: Option<u64>,
    /// SYNs whose handshake was under way: retransmissions, and clients that began anew from the same port.
    #[serde(default)]
    pub retransmit: Option<u64>,
    /// SYNs for which there was no socket: the kernel resets these.
    #[serde(default)]
    pub refused: Option<u64>,
    /// SYNs that asked to join an MPTCP connection as a further subflow.
    #[serde(default)]
    pub join: Option<u64>,
    /// Packets that may have been a SYN and could not be parsed that far. One that could not be parsed as far as its port
    /// is here for every listener.
    pub opaque: Option<u64>,
    /// SYNs on a flow that had a connection. They open none, and do not count as attempts (E2).
    #[serde(default)]
    pub stray: Option<u64>,
    /// SYNs of kubelet's probes, which do not count as attempts. `null` where none was told apart: if there were any, they
    /// are in `new`.
    #[serde(default)]
    pub probe: Option<u64>,
    /// SYNs from a source that the operator named in `listeners.ignoreSources`, which do not count as attempts.
    #[serde(default)]
    pub ignored: Option<u64>,
    /// Attempts since the drain's end, as far as they count; `null` before that, and where nothing counts them.
    #[serde(default)]
    pub late: Option<u64>,
    /// How long before the last reading the last counting attempt came; `null` if none is known.
    pub last_attempt_ago_ms: Option<u64>,
    /// Whether, at the last reading, none had come for the quiet period as far as is known.
    pub quiet: bool,
}

impl FamilyCounts {
    /// How many of a class; `None` where nothing counts it.
    pub fn count(&self, class: Class) -> Option<u64> {
        match class {
            Class::New => self.new,
            Class::Retransmit => self.retransmit,
            Class::Refused => self.refused,
            Class::Probe => self.probe,
            Class::Ignored => self.ignored,
            Class::Join => self.join,
            Class::Stray => self.stray,
            Class::Opaque => self.opaque,
        }
    }
}

/// Something that could lead a connection to the pod and was not observed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotObserved {
    /// The kind of thing: `sensor`, `routing`, `interface`.
    pub what: String,
    /// Which one, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its family, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// Why, in words for the operator.
    pub why: String,
}

/// Where the counts come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sensor {
    /// How SYNs are seen.
    pub strategy: Strategy,
    /// Whether it was known to see everything, from the hook's call on.
    pub healthy: bool,
    /// For how long an interface may have been up and not watched in this drain: never less than it was. What was found
    /// after the hook's call may have begun before it.
    #[serde(default)]
    pub blind_ms: u64,
    /// S3: whether the namespace's own count of completed handshakes stood witness to its count of SYNs. It cannot where
    /// the namespace is the node's.
    #[serde(default)]
    pub witness: bool,
}

/// How SYNs are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// An eBPF program at TCX ingress of every interface: every SYN, exactly.
    Tcx,
    /// The same program as a filter of the older traffic control (`clsact`) on every interface.
    Clsact,
    /// An eBPF program on the pod's control group: every SYN that meets a listener of the pod, also where the pod shares
    /// the node's network.
    Cgroup,
    /// A packet socket with a classic filter: every SYN, and by its own count how many it had no room for.
    Packet,
    /// The namespace's TCP counters and the socket table: coarse, never enough for `quiet`.
    Counters,
}

impl Strategy {
    /// The name that verdicts, metrics and log lines use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
            Self::Cgroup => "cgroup",
            Self::Packet => "packet",
            Self::Counters => "counters",
        }
    }

    /// Whether it can tell that an attempt is of this class. One that is of a class it cannot tell is in another that
    /// counts, or is not seen: see [`sees_closed_ports`](Self::sees_closed_ports).
    pub fn tells(self, class: Class) -> bool {
        match self {
            Self::Tcx | Self::Clsact => true,
            // Which connection a SYN met is not to be had after the fact: such a SYN is in `new`.
            Self::Packet => class != Class::Stray,
            Self::Cgroup => !matches!(class, Class::Refused | Class::Stray),
            Self::Counters => false,
        }
    }

    /// Whether it sees a SYN for which there is no listener.
    pub fn sees_closed_ports(self) -> bool {
        match self {
            Self::Tcx | Self::Clsact | Self::Packet => true,
            // The kernel asks a control group's programs once it has found the socket.
            Self::Cgroup | Self::Counters => false,
        }
    }
}
