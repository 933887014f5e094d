//! One family's part of a process: when it syncs, what its health server says of it.

use lastsyn::core::{clock::Monotonic, cluster::NodeTime, listener::Family};

use super::super::routes::View;

/// What the kernel does, whichever process wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Rules {
    /// Some new connection over this node comes to the pod.
    pub(in super::super) route: bool,
    /// What that was made of.
    pub(in super::super) view: View,
    /// The fence's marker in it.
    pub(in super::super) marker: u32,
}

/// One family's part of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proxier {
    /// Since when a sync is due.
    pub(super) due: Option<Monotonic>,
    /// A start is planned.
    pub(super) start_planned: bool,
    pub(super) sync: Option<Sync>,
    pub(super) last_end: Option<Monotonic>,
    /// The health server's `lastUpdated`, by the node's clock; `None` until the process' own stamp.
    pub(super) stamp: Option<NodeTime>,
    /// Since when a change is pending, as the health server believes.
    pub(super) pending: Option<Monotonic>,
    /// What the fence Service's health-check node port answers.
    pub(super) port: u32,
}

/// A sync under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) view: View,
    pub(super) since: Monotonic,
    /// It will fail.
    pub(super) fails: bool,
    pub(super) wrote_pod: bool,
    pub(super) wrote_marker: bool,
}

/// The place of a family in a pair.
pub(in super::super) fn place(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}
