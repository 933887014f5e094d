//! E2a: a SYN that was dropped unanswered comes back. Linux clients try again after 1, 2 and 4 s, and the nodes'
//! connection tracking sends each try to this pod, whatever the routing says by then.

use std::time::Duration;

use super::{
    clock::Monotonic,
    event::{Evidence, NamespaceCounters, SensorState},
    hold::Hold,
    listener::Family,
};

/// Until when the next try of a dropped SYN is awaited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    until: Option<Monotonic>,
    seen: Option<(Monotonic, NamespaceCounters)>,
}

impl Retry {
    /// Compares with the reading before. Returns how many SYNs were dropped since then.
    pub(super) fn update(&mut self, evidence: &Evidence, retry_wait: Duration) -> u64 {
        let (before, dropped) = match self.seen.replace((evidence.taken_at, evidence.namespace)) {
            Some((at, counters)) => (Some(at), evidence.namespace.dropped.saturating_sub(counters.dropped)),
            // Drops from before the first reading may have been just now.
            None => (None, evidence.namespace.dropped),
        };
        if dropped > 0 {
            self.until = self.until.max(Some(dropped_at(evidence, before) + retry_wait));
        }
        dropped
    }

    /// Whether a further try is awaited.
    pub(super) fn hold(self, now: Monotonic) -> Hold {
        self.until.map_or(Hold::Met, |until| Hold::until(until, now))
    }
}

/// The latest time at which the dropped SYN can have come: that of the last attempt, where the sensor saw every one
/// since the reading before; else the time of this reading.
fn dropped_at(evidence: &Evidence, before: Option<Monotonic>) -> Monotonic {
    let (SensorState::Proven { since, .. }, Some(before)) = (&evidence.sensor, before) else {
        return evidence.taken_at;
    };
    let watched_throughout = *since <= before && evidence.attempts.values().all(|port| port.watched_since <= before);
    if !watched_throughout {
        return evidence.taken_at;
    }
    let attempts = evidence.attempts.values().flat_map(|port| [port.families.v4.last(), port.families.v6.last()]);
    let unattributed = Family::ALL.map(|family| evidence.unattributed.get(family).last);
    attempts.chain(unattributed).flatten().max().unwrap_or(evidence.taken_at)
}
