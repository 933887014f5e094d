//! C13: what each kind of evidence assumes, and which replaces which.

use std::time::Duration;

use super::Bounds;

/// What showed that a node has everything up to the last relevant change. Later in this order is stronger: it needs
/// less to be assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// C7: nothing but an answer after a wait. Not a confirmation.
    Waited,
    /// C6: an edge after the change, and an answer after the wait.
    SettledByWait,
    /// C6: an edge so late that its sync had the change.
    SettledByEdge,
    /// C5: two edges of one process that has the change.
    Syncs,
    /// C4: two markers that were written after the change.
    Fence,
}

/// A bound on somebody's lag, or a fault that must not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assumption {
    /// A kube-proxy that starts does not list what is older than `watchLag`. Without it no evidence lasts.
    FirstList,
    /// A kube-proxy's handlers have a change within `watchLag`, and it does not list what is older.
    WatchLag,
    /// A sync ends within `syncTime`.
    SyncTime,
    /// A sync that is due starts within `minSync`.
    MinSync,
    /// No sync failed.
    NoFailedSync,
}

// === impl By ===

impl By {
    /// The name that verdicts, metrics and log lines use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waited => "waited",
            Self::SettledByWait | Self::SettledByEdge => "settled",
            Self::Syncs => "syncs",
            Self::Fence => "fence",
        }
    }

    /// What it rests on. A change of a Service's policies or ports has no place in the order of the markers: after one, a
    /// fence rests on `watchLag` too.
    pub fn assumes(self, policy_changed: bool) -> &'static [Assumption] {
        use Assumption::{FirstList, MinSync, NoFailedSync, SyncTime, WatchLag};
        match self {
            Self::Fence if policy_changed => &[FirstList, WatchLag],
            Self::Fence => &[FirstList],
            Self::Syncs => &[WatchLag],
            Self::SettledByEdge => &[WatchLag, SyncTime],
            Self::SettledByWait | Self::Waited => &[WatchLag, SyncTime, MinSync, NoFailedSync],
        }
    }
}

// === impl Assumption ===

impl Assumption {
    /// As verdicts write it: `watchLag<=2s`.
    pub fn text(self, bounds: &Bounds) -> String {
        let within = |name: &str, bound: Duration| format!("{name}<={bound:?}");
        match self {
            Self::FirstList => within("firstList", bounds.watch_lag),
            Self::WatchLag => within("watchLag", bounds.watch_lag),
            Self::SyncTime => within("syncTime", bounds.sync_time),
            Self::MinSync => within("minSync", bounds.min_sync),
            Self::NoFailedSync => "noFailedSync".to_owned(),
        }
    }
}
