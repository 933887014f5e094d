//! Everything that is decided before a drain is played: what the cluster is like, and what happens to it when. A step that
//! is left out changes nothing else, which is how a failing plan is made small.

use std::{fmt, time::Duration};

use lastsyn::core::{cluster::TrafficPolicy, listener::Family};

use super::{
    api::Policy,
    node::{NodeId, Profile},
    timeline::name,
};

/// One drain.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) families: &'static [Family],
    pub(super) nodes: Vec<Profile>,
    /// The Services at the beginning.
    pub(super) services: Vec<Policy>,
    /// Where each pod runs, and what it is at the beginning. The first is the one that drains.
    pub(super) pods: Vec<(NodeId, Condition)>,
    pub(super) slices: Vec<SlicePlan>,
    pub(super) controller: ControllerPlan,
    pub(super) agent: AgentPlan,
    pub(super) traffic: Traffic,
    pub(super) balancer: Option<Duration>,
    pub(super) steps: Vec<Step>,
}

/// What a pod is to its Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Ready,
    /// Its readiness probe fails.
    NotReady,
    /// It is being deleted, and still answers.
    Terminating,
    /// It is being deleted, and its readiness probe fails.
    Dying,
    Gone,
}

/// A slice: which pods it lists, as long as they are there.
#[derive(Clone, Debug)]
pub(super) struct SlicePlan {
    pub(super) service: usize,
    pub(super) family: Family,
    pub(super) ports: Vec<(u8, u16)>,
    pub(super) pods: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ControllerPlan {
    /// How long a write takes after the change of a pod: on average, and what it stays below.
    pub(super) lag: (Duration, Duration),
    /// `publishNotReadyAddresses`.
    pub(super) publishes_not_ready: bool,
    /// Conditions that say what the absence of one means are left out, as other writers of slices do.
    pub(super) terse: bool,
    /// A slice that lists nothing is deleted.
    pub(super) deletes_empty: bool,
}

#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(super) struct AgentPlan {
    pub(super) min_wait: Duration,
    pub(super) max_wait: Duration,
    pub(super) fence: bool,
    pub(super) window: Duration,
    pub(super) exit_at_connections: Option<u64>,
    /// How late its watch is: on average, and what it stays below.
    pub(super) lag: (Duration, Duration),
    /// One way to whatever it asks.
    pub(super) latency: Duration,
    /// Between an answer and the next request.
    pub(super) interval: Duration,
    /// How old its first lists can be.
    pub(super) stale_list: Duration,
    /// How many consistent reads of a hundred fail.
    pub(super) read_failures: u32,
    pub(super) api_forbidden: bool,
    pub(super) services_forbidden: bool,
    /// It may not list nodes, and so asks none of them.
    pub(super) nodes_forbidden: bool,
    /// How long a reading of the kernel's evidence takes at most.
    pub(super) reading: Duration,
    /// How late its loop is at most.
    pub(super) lateness: Duration,
    /// Clients' addresses are hidden behind the node's that forwards them (C14).
    pub(super) masqueraded: bool,
}

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Between two connections of all clients together; `None`: there are none.
    pub(super) mean: Option<Duration>,
    /// How many handshakes of a hundred take time.
    pub(super) slow_handshakes: u32,
    /// How many connections of a hundred wait to be accepted.
    pub(super) slow_accepts: u32,
    /// Connections that are open at the beginning.
    pub(super) established: u64,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// After the world's beginning.
    pub(super) at: Duration,
    pub(super) what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A pod becomes this.
    Pod(u16, Condition),
    /// A pod's endpoint moves from one slice to another: two writes.
    Move(u16, usize, usize),
    /// A pod's endpoint is listed by another slice too.
    Copy(u16, usize),
    /// A slice is written this much later from now on: it has another writer.
    Neglect(usize, Duration),
    /// A Service's policies are these from now on.
    Policy(usize, Policy),
    NodeJoins(NodeId),
    NodeLeaves(NodeId),
    Freeze(NodeId, Duration),
    /// kube-proxy dies and is started again; what a sync had still to write is written.
    Kill(NodeId, Duration, bool),
    /// Nothing comes from the API server; a list follows.
    Cut(NodeId, Duration, bool),
    FailSyncs(NodeId, u32),
    StepClock(NodeId, i64),
    BreakConnection(NodeId),
    /// The fence dies, and is back.
    FenceAway(Duration),
    AgentGap(Duration, bool),
    /// The agent gets no processor.
    AgentStands(Duration),
    /// The agent dies and is started again.
    AgentRestarts(Duration),
    /// The sensor misses everything, and says so.
    SensorGap(Duration, bool),
    Overflow(Duration),
    /// So many clients at once.
    Burst(u8),
    CallerJoins,
    CallersLeave,
    Terminate,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(pod, condition) => write!(f, "pod {pod} is {condition:?}"),
            Self::Move(pod, from, to) => write!(f, "pod {pod} moves from slice {from} to slice {to}"),
            Self::Copy(pod, to) => write!(f, "slice {to} lists pod {pod} too"),
            Self::Neglect(slice, later) => write!(f, "slice {slice} is written {later:?} later from now on"),
            Self::Policy(service, Policy { external, internal, .. }) => {
                write!(f, "service {service}: external {external:?}, internal {internal:?}")
            }
            Self::NodeJoins(node) => write!(f, "node {} joins", name(*node)),
            Self::NodeLeaves(node) => write!(f, "node {} leaves", name(*node)),
            Self::Freeze(node, length) => write!(f, "node {}: kube-proxy stands still for {length:?}", name(*node)),
            Self::Kill(node, down, _) => write!(f, "node {}: kube-proxy dies, and is back after {down:?}", name(*node)),
            Self::Cut(node, length, relists) => {
                let after = if *relists { "then lists anew" } else { "then goes on" };
                write!(f, "node {}: kube-proxy is cut from the API server for {length:?}, {after}", name(*node))
            }
            Self::FailSyncs(node, syncs) => write!(f, "node {}: the next {syncs} syncs fail", name(*node)),
            Self::StepClock(node, nanos) => {
                write!(f, "node {}: the wall clock is set by {} ms", name(*node), nanos / 1_000_000)
            }
            Self::BreakConnection(node) => write!(f, "the agent's connection to node {} breaks", name(*node)),
            Self::FenceAway(length) => write!(f, "the fence dies, and is back after {length:?}"),
            Self::AgentGap(length, relists) => {
                let after = if *relists { "then it lists anew" } else { "then it goes on" };
                write!(f, "the agent's watch brings nothing for {length:?}, {after}")
            }
            Self::AgentStands(length) => write!(f, "the agent gets no processor for {length:?}"),
            Self::AgentRestarts(down) => write!(f, "the agent dies, and is back after {down:?}"),
            Self::SensorGap(length, noticed) => {
                write!(f, "the sensor misses everything for {length:?}{}", if *noticed { "" } else { ", unnoticed" })
            }
            Self::Overflow(length) => write!(f, "the server drops SYNs for {length:?}"),
            Self::Burst(clients) => write!(f, "{clients} clients connect at once"),
            Self::CallerJoins => f.write_str("another hook is called"),
            Self::CallersLeave => f.write_str("every hook but the first is gone"),
            Self::Terminate => f.write_str("the agent gets SIGTERM"),
        }
    }
}

/// Policies that name nothing.
pub(super) const CLUSTER: Policy =
    Policy { external: TrafficPolicy::Cluster, internal: TrafficPolicy::Cluster, health_check_node_port: None };
