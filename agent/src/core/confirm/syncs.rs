//! C5: `syncs`. Assumes `watchLag` alone.
//!
//! From the change + `watchLag` on the process' handlers have the change. The sync that made the first edge may have
//! taken its snapshot before that; the one that made the second began after the first had ended.

use crate::core::clock::Monotonic;

use super::{Bounds, connection::Answer};

/// How many edges one connection has shown after the last relevant change + `watchLag`: 0 to 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Syncs {
    edges: u8,
}

impl Syncs {
    /// Takes an answer in. Whether it shows, with those before it, that the node has everything up to `since`.
    pub(super) fn proves(&mut self, answer: &Answer, since: Monotonic, bounds: &Bounds) -> bool {
        if answer.has_edge_after(since + bounds.watch_lag) {
            self.edges = self.edges.saturating_add(1).min(2);
        }
        self.edges >= 2
    }
}
