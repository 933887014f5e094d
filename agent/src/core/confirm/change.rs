//! C10: what voids, and from when on evidence counts.

use crate::core::clock::Monotonic;

use super::Bounds;

/// The last relevant change of one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Change {
    /// One more with each relevant change, so that voiding costs nothing: evidence of another number is void.
    number: u64,
    last: Option<Monotonic>,
    /// From when on a fence's request is after the last change of a Service's policies or ports.
    policy_known: Option<Monotonic>,
    /// C14: the last contradiction of any node.
    contradicted: Option<Monotonic>,
}

impl Change {
    /// A relevant change reached us.
    pub(super) fn relevant(&mut self, at: Monotonic) {
        self.number = self.number.saturating_add(1);
        self.last = self.last.max(Some(at));
    }

    /// Every node has the last change of a Service's policies or ports by `known`.
    pub(super) fn policy(&mut self, known: Monotonic) {
        self.policy_known = self.policy_known.max(Some(known));
    }

    /// A node contradicted its confirmation: what the fence was asked before does not count for it.
    pub(super) fn fence_again(&mut self, at: Monotonic) {
        self.contradicted = self.contradicted.max(Some(at));
    }

    /// Which change this is.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// When the last relevant change reached us; `None` before the first list.
    pub(super) fn last(&self) -> Option<Monotonic> {
        self.last
    }

    /// From when on a request to the fence counts for every node.
    pub(super) fn a_fence_counts_from(&self) -> Option<Monotonic> {
        Some(self.last?.max(self.contradicted.unwrap_or_default()).max(self.policy_known.unwrap_or_default()))
    }

    /// Whether a fence rests on `watchLag` too: no marker is ordered after a write to another resource.
    pub(super) fn policy_changed(&self) -> bool {
        self.policy_known.is_some()
    }
}

/// The next of the times from which an answer counts for more than before: `syncs` and the fence's connection (C5,
/// C11), an edge alone (C6), the end of the wait (C6), and the same from the connection's base (C7).
pub(super) fn due(since: Monotonic, waited_from: Monotonic, bounds: &Bounds, now: Monotonic) -> Option<Monotonic> {
    let lag = since + bounds.watch_lag;
    [lag, lag + bounds.sync_time, since + bounds.steady(), waited_from + bounds.steady()]
        .into_iter()
        .filter(|due| *due > now)
        .min()
}
