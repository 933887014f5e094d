//! E2a: a SYN that was dropped unanswered comes back. Linux clients try again after 1, 2 and 4 s, and the nodes'
//! connection tracking sends each try to this pod, whatever the routing says by then.

use std::time::Duration;

use super::{clock::Monotonic, counters::Growth, event::Evidence, hold::Hold};

/// Until when the next try of a dropped SYN is awaited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Retry {
    until: Option<Monotonic>,
}

impl Retry {
    /// Takes over what was dropped since the reading before.
    pub(super) fn update(&mut self, growth: Growth, retry_wait: Duration) {
        if growth.dropped > 0 {
            self.until = self.until.max(growth.latest.map(|latest| latest + retry_wait));
        }
    }

    /// Whether a further try is awaited.
    pub(super) fn hold(self, evidence: &Evidence) -> Hold {
        match self.until.map_or(Hold::Met, |until| Hold::until(until, evidence.taken_at)) {
            // What was dropped is not known; the bound ends it.
            Hold::Met if evidence.namespace.is_err() => Hold::Open,
            hold => hold,
        }
    }
}
