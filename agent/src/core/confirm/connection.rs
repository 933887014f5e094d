//! C1: the connection is the process. C2: what counts as an answer. C3: edges.

use crate::core::{
    clock::Monotonic,
    cluster::{ConnectionId, FamilyHealth, HealthReport, NodeTime},
};

/// The newest connection to a node's health server. Numbers grow, so that what comes late over an older one is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    newest: Option<ConnectionId>,
    broken: bool,
}

/// What a report's connection is to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The same, and it stands: the same process.
    Same,
    /// A new one: the process may be another.
    New,
    /// An older one, or one that is broken: it says nothing of the process that runs now.
    Stale,
}

/// What a connection has answered for one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Answers {
    base_at: Monotonic,
    last_sent: Monotonic,
    last_stamp: NodeTime,
}

/// One answer with a status, in the light of those before it on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// When its request was sent.
    pub(super) sent_at: Monotonic,
    /// When it arrived.
    pub(super) received_at: Monotonic,
    /// When the connection's base arrived: a stamp that the process made as it started is at or before it.
    pub(super) base_at: Monotonic,
    /// What it says of pending changes.
    pub(super) healthy: bool,
    /// Where the stamp differs from the one before: when that one's request was sent. A sync ended after it.
    pub(super) edge_after: Option<Monotonic>,
}

// === impl Connection ===

impl Connection {
    /// Takes in over which connection a report came.
    pub(super) fn arrive(&mut self, id: ConnectionId) -> Arrival {
        match self.newest {
            Some(newest) if id < newest || (id == newest && self.broken) => Arrival::Stale,
            Some(newest) if id == newest => Arrival::Same,
            _ => {
                *self = Self { newest: Some(id), broken: false };
                Arrival::New
            }
        }
    }

    /// The newest connection is no more.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
    }
}

// === impl Answers ===

impl Answers {
    /// Takes the next answer of one connection in. `None` for one that came out of turn: a stamp that is older than the
    /// last one would make an edge where no sync ended.
    pub(super) fn take(this: &mut Option<Self>, report: &HealthReport, health: FamilyHealth) -> Option<Answer> {
        let last = *this;
        if last.is_some_and(|last| report.sent_at < last.last_sent) {
            return None;
        }
        let base_at = last.map_or(report.received_at, |last| last.base_at);
        *this = Some(Self { base_at, last_sent: report.sent_at, last_stamp: health.last_updated });
        Some(Answer {
            sent_at: report.sent_at,
            received_at: report.received_at,
            base_at,
            healthy: health.healthy,
            edge_after: last.filter(|last| last.last_stamp != health.last_updated).map(|last| last.last_sent),
        })
    }

    /// When the connection's base arrived.
    pub(super) fn base_at(&self) -> Monotonic {
        self.base_at
    }
}

// === impl Answer ===

impl Answer {
    /// Whether a sync is known to have ended after `time`.
    pub(super) fn has_edge_after(&self, time: Monotonic) -> bool {
        self.edge_after.is_some_and(|after| after >= time)
    }
}
