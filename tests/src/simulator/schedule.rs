//! What is to happen, in the order of its time; at one time in the order in which it was planned.

use std::{cmp::Ordering, collections::BinaryHeap};

use lastsyn::core::{
    clock::Monotonic,
    cluster::{FenceRequest, ReadId},
    event::HandshakeId,
};

use super::{api::ObjectId, kube_proxy::ProxyEvent, node::NodeId};

/// What can happen of itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A step of the plan.
    Step(usize),
    /// The endpoint controller writes a slice.
    WriteSlice(ObjectId),
    /// A process of a node's kube-proxy does something.
    Proxy(NodeId, u32, ProxyEvent),
    /// A node's kube-proxy is started (again).
    StartProxy(NodeId),
    /// An answer, or a delivery, to the agent of this number.
    Observer(u32, ObserverEvent),
    Fence(FenceEvent),
    Pod(PodEvent),
    /// The hook is called.
    Hook,
    /// The agent starts (again).
    StartAgent,
    /// The sensor's programs are in place again.
    MendSensor,
    /// The load balancer asks the pod's node.
    Balancer,
}

/// To the agent's observer of the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum ObserverEvent {
    ListSlices,
    ListServices,
    ListNodes,
    DeliverSlice,
    DeliverService,
    DeliverNode,
    /// The watch is lost, and a list replaces it.
    Relist,
    /// A consistent read is made, at the API server.
    ReadTaken(ReadId),
    /// Its answer arrives.
    ReadAnswered(ReadId),
    /// A health request reaches its node.
    Poll(NodeId),
    /// A health answer that took its time arrives.
    PollAnswered(NodeId),
    /// A request for the number of local endpoints reaches the pod's node.
    PollLocal(usize),
    /// A request for progress reaches the fence.
    PollFence,
    /// A reading of the kernel's evidence is done.
    Evidence,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum FenceEvent {
    Asked(FenceRequest),
    Write,
    Look,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PodEvent {
    /// A client makes a connection.
    Client,
    /// A client whose SYN was dropped sends it again: which, and how many times it has tried.
    Again(u32, u8),
    /// A handshake is completed.
    Complete(HandshakeId),
    /// The server accepts a connection that waited.
    Accept,
    /// A connection is closed.
    Close,
}

/// The events to come.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    heap: BinaryHeap<Entry>,
    planned: u64,
}

#[derive(Debug)]
struct Entry {
    at: Monotonic,
    number: u64,
    event: Event,
}

impl Schedule {
    pub(super) fn add(&mut self, at: Monotonic, event: Event) {
        self.planned += 1;
        self.heap.push(Entry { at, number: self.planned, event });
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Monotonic> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(super) fn take(&mut self) -> Option<(Monotonic, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}
