//! What happened, as typed entries in a bounded ring.

use std::{collections::VecDeque, fmt};

use super::{
    clock::Monotonic,
    cluster::{NodeName, PortName, ServiceName},
    event::CallerId,
    listener::{Family, Port},
    phase::Phase,
    termination::Sign,
    verdict::{Reason, Strategy},
};

/// How many entries are kept. A drain makes a few; the oldest go first.
const CAPACITY: usize = 256;

/// The bounded record behind a verdict.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    entries: VecDeque<Entry>,
    dropped: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Monotonic,
    /// What.
    pub what: Transition,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// A port is watched from now on.
    ListenerFound(Port),
    /// A watched port has no listening socket any more. It stays watched.
    ListenerClosed(Port),
    /// A closed port has a listening socket again.
    ListenerReopened(Port),
    /// The sensor is known to see everything from now on.
    SensorProven(Strategy),
    /// It is not, and why.
    SensorUnproven(String),
    /// More handshakes were completed than SYNs were seen: by how many.
    SensorBlind(u64),
    /// This many SYNs were dropped unanswered since the reading before.
    SynsDropped(u64),
    /// The socket table could not be read, and why.
    SocketsUnreadable(String),
    /// The namespace's counters could not be read, and why.
    CountersUnreadable(String),
    /// A hook was called and started a drain.
    DrainStarted(CallerId),
    /// A further caller joined.
    CallerJoined(CallerId),
    /// A caller went away without its answer.
    CallerLeft(CallerId),
    /// SIGTERM.
    Terminating,
    /// S5: the pod is known to be terminating, and by what.
    TerminationShown(Sign),
    /// The server in the pod was told.
    Told(Phase),
    /// It was not; in words.
    NotTold(Phase, String),
    /// The nodes' confirmations void: a relevant change of this family (C10).
    RelevantChange(Family),
    /// A Service's port leads to the pod over this family.
    Routed(ServiceName, PortName, Family),
    /// It does no longer.
    Withdrawn(ServiceName, PortName, Family),
    /// No node is pending any more.
    NodesSettled,
    /// C14: a SYN came through a node that had been confirmed.
    Contradicted(NodeName, Family),
    /// C9: a consistent read shows what is believed.
    ReadAgrees,
    /// C9: a consistent read showed something that the watch did not deliver in time.
    WatchBehind,
    /// C9: there is no consistent read to be had, and why.
    ReadForbidden(String),
    /// Slices cannot be read, and none were in this drain, and why.
    SlicesUnreadable(String),
    /// The fence answers.
    FenceAnswers,
    /// It does not, and why.
    FenceFails(String),
    /// The drain ended.
    DrainEnded(Reason),
    /// The agent stops.
    Stopping,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn record(&mut self, at: Monotonic, what: Transition) {
        if self.entries.len() == CAPACITY {
            self.entries.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
        self.entries.push_back(Entry { at, what });
    }

    /// The entries that are kept, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many older entries had to go.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many were ever recorded: entries from a count on are `recorded - entries().count()..`.
    pub fn recorded(&self) -> u64 {
        self.dropped.saturating_add(self.entries.len() as u64)
    }
}

// === impl Transition ===

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListenerFound(port) => write!(f, "port {port} is watched from now on"),
            Self::ListenerClosed(port) => write!(f, "port {port} has no listener any more; it stays watched"),
            Self::ListenerReopened(port) => write!(f, "port {port} has a listener again"),
            Self::SensorProven(Strategy::Counters) => f.write_str("the namespace's counters are read"),
            Self::SensorProven(Strategy::Cgroup) => {
                f.write_str("the sensor (cgroup) is known to see every SYN that meets a listener")
            }
            Self::SensorProven(strategy) => {
                write!(f, "the sensor ({}) is known to see every SYN", strategy.name())
            }
            Self::SensorUnproven(why) => write!(f, "the sensor is not known to see every SYN: {why}"),
            Self::SensorBlind(by) => {
                write!(f, "the sensor is blind: {by} more handshakes were completed than SYNs were seen")
            }
            Self::SynsDropped(count) => write!(f, "{count} SYNs were dropped unanswered; their clients will try again"),
            Self::SocketsUnreadable(why) => write!(f, "the socket table could not be read: {why}"),
            Self::CountersUnreadable(why) => write!(f, "the namespace's counters could not be read: {why}"),
            Self::DrainStarted(caller) => write!(f, "caller {} called the hook: the drain starts", caller.0),
            Self::CallerJoined(caller) => write!(f, "caller {} joined the drain", caller.0),
            Self::CallerLeft(caller) => write!(f, "caller {} went away; the drain goes on", caller.0),
            Self::Terminating => f.write_str("asked to stop (SIGTERM)"),
            Self::TerminationShown(Sign::OwnHook) => {
                f.write_str("the pod is terminating: the agent's own hook was called")
            }
            Self::TerminationShown(Sign::Signal) => f.write_str("the pod is terminating: SIGTERM came"),
            Self::TerminationShown(Sign::Pod) => f.write_str("the pod is terminating: its object says so"),
            Self::TerminationShown(Sign::Slice) => f.write_str("the pod is terminating: a slice lists it so"),
            Self::Told(phase) => write!(f, "the server in the pod was told: {}", phase.name()),
            Self::NotTold(phase, why) => write!(f, "the server in the pod could not be told {}: {why}", phase.name()),
            Self::RelevantChange(family) => {
                write!(f, "{family}: the pod's slices or Services changed; every node is awaited")
            }
            Self::Routed(service, port, family) => write!(f, "{} leads to the pod", route(service, port, *family)),
            Self::Withdrawn(service, port, family) => {
                write!(f, "{} leads to the pod no longer", route(service, port, *family))
            }
            Self::NodesSettled => f.write_str("no node is awaited any more"),
            Self::Contradicted(node, family) => {
                write!(f, "node {node} sent a new connection over {family} after it was confirmed; it is awaited again")
            }
            Self::ReadAgrees => f.write_str("a consistent read of the API server shows what the watch showed"),
            Self::WatchBehind => {
                f.write_str("a consistent read showed what the watch did not deliver; every node is awaited")
            }
            Self::ReadForbidden(why) => write!(f, "there is no consistent read of the API server: {why}"),
            Self::FenceAnswers => f.write_str("the fence answers"),
            Self::FenceFails(why) => write!(f, "the fence does not serve this drain: {why}; it is tried again"),
            Self::SlicesUnreadable(why) => write!(f, "whether the pod is routed to cannot be known: {why}"),
            Self::DrainEnded(reason) => write!(f, "the drain ended: {}", reason.name()),
            Self::Stopping => f.write_str("stopping"),
        }
    }
}

fn route(service: &ServiceName, port: &PortName, family: Family) -> String {
    if port.0.is_empty() {
        format!("Service {service} over {family}")
    } else {
        format!("Service {service}, port {port}, over {family}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_words_of_its_own() {
        let port = Port::try_from(80).unwrap();
        let (service, unnamed) = (ServiceName("web".to_owned()), PortName(String::new()));
        let (name, node) = (PortName("http".to_owned()), NodeName("a".to_owned()));
        let entries = [
            Transition::ListenerFound(port),
            Transition::ListenerClosed(port),
            Transition::ListenerReopened(port),
            Transition::SensorProven(Strategy::Tcx),
            Transition::SensorProven(Strategy::Cgroup),
            Transition::SensorProven(Strategy::Counters),
            Transition::SensorUnproven("no eBPF".to_owned()),
            Transition::SensorBlind(3),
            Transition::SynsDropped(4),
            Transition::SocketsUnreadable("EPERM".to_owned()),
            Transition::CountersUnreadable("ENOENT".to_owned()),
            Transition::DrainStarted(CallerId(1)),
            Transition::CallerJoined(CallerId(1)),
            Transition::CallerLeft(CallerId(1)),
            Transition::Terminating,
            Transition::TerminationShown(Sign::OwnHook),
            Transition::TerminationShown(Sign::Signal),
            Transition::TerminationShown(Sign::Pod),
            Transition::TerminationShown(Sign::Slice),
            Transition::Told(Phase::Announce),
            Transition::Told(Phase::FailReadiness),
            Transition::Told(Phase::TakeBack),
            Transition::NotTold(Phase::Announce, "refused".to_owned()),
            Transition::RelevantChange(Family::V4),
            Transition::Routed(service.clone(), name.clone(), Family::V4),
            Transition::Withdrawn(service.clone(), name, Family::V6),
            Transition::Withdrawn(service, unnamed, Family::V6),
            Transition::NodesSettled,
            Transition::Contradicted(node, Family::V4),
            Transition::ReadAgrees,
            Transition::WatchBehind,
            Transition::ReadForbidden("no token".to_owned()),
            Transition::SlicesUnreadable("no token".to_owned()),
            Transition::DrainEnded(Reason::Quiet),
            Transition::DrainEnded(Reason::Synced),
            Transition::Stopping,
        ];
        let words: std::collections::BTreeSet<_> = entries.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), entries.len(), "{words:#?}");
        assert!(words.contains("Service web, port http, over IPv4 leads to the pod"), "{words:#?}");
        assert!(words.contains("Service web over IPv6 leads to the pod no longer"), "{words:#?}");
    }

    #[test]
    fn the_ring_keeps_the_newest_and_says_how_many_went() {
        let mut journal = Journal::default();
        for nanos in 0..300 {
            journal.record(Monotonic::from_nanos(nanos), Transition::Terminating);
        }
        assert_eq!(journal.entries().count(), CAPACITY);
        assert_eq!(journal.dropped(), 44);
        assert_eq!(journal.recorded(), 300);
        assert_eq!(journal.entries().next().map(|entry| entry.at), Some(Monotonic::from_nanos(44)));
    }
}
