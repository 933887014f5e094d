//! C6: `settled`. Assumes `watchLag` and `syncTime`; by its first form, that no sync failed too.

use crate::core::clock::Monotonic;

use super::{Bounds, By, connection::Answer};

/// Whether one connection has shown an edge after the last relevant change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settled {
    edge: bool,
}

impl Settled {
    /// Takes an answer in. What it shows, with those before it, of everything up to `since`.
    pub(super) fn proves(&mut self, answer: &Answer, since: Monotonic, bounds: &Bounds) -> Option<By> {
        self.edge |= answer.has_edge_after(since);
        // A sync that began before the handlers had the change ends within `syncTime`: one that ended later had it.
        if answer.has_edge_after(since + bounds.watch_lag + bounds.sync_time) {
            return Some(By::SettledByEdge);
        }
        // The edge shows that this process has synced, and so is past its start: the rest is waiting.
        (self.edge && answer.healthy && answer.sent_at >= since + bounds.steady()).then_some(By::SettledByWait)
    }
}
