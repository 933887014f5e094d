//! What a node is made of, and which of the assumptions it has broken.

use std::time::Duration;

use lastsyn::core::confirm::Bounds;

use super::routes::Copies;

/// A node, by number. The first is the pod's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) usize);

/// What the agent assumes, and the design's defaults.
pub(super) const BOUNDS: Bounds =
    Bounds { watch_lag: Duration::from_secs(2), sync_time: Duration::from_secs(2), min_sync: Duration::from_secs(1) };

/// What a node's kube-proxy is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// How late its watch is: on average, and what it stays below.
    pub(super) lag: (Duration, Duration),
    pub(super) queue: Queue,
    /// How long a sync takes: from, to.
    pub(super) sync: (Duration, Duration),
    /// `minSyncPeriod`: from the end of a sync to the start of the next.
    pub(super) min_interval: Duration,
    pub(super) writing: Writing,
    pub(super) copies: Copies,
    /// When a failed sync is tried again.
    pub(super) retry: Duration,
    /// How often on average something else makes it sync; `None`: never.
    pub(super) busy: Option<Duration>,
    pub(super) first_list: FirstList,
    /// The node's wall clock, against the agent's; nanoseconds.
    pub(super) clock: i128,
    pub(super) health: Health,
    /// The Node object is there from the beginning.
    pub(super) there: bool,
}

/// How the informer keeps what its watch delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// In the order of the stream (client-go 1.33 and newer).
    InOrder,
    /// One place for each object (`DeltaFIFO`).
    DeltaFifo,
}

/// How rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// All at once (nftables, iptables).
    AtOnce,
    /// Service by Service (ipvs).
    ByService,
}

/// How old the first list of a process can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstList {
    /// Up to `watchLag` when it arrives: what `watchLag` says.
    BeforeArrival,
    /// Up to `watchLag` when the process starts, and it can take long: all that `firstList` says.
    BeforeStart,
}

/// What a node's health server is to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// kube-proxy's.
    Status,
    /// Another proxy's, without a status.
    NoStatus,
    /// Out of reach: it refuses.
    Refused,
}

/// Which assumptions a node's kube-proxy has broken in this drain. It never breaks `firstList`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an assumption of its own")]
pub(super) struct Broken {
    pub(super) watch_lag: bool,
    pub(super) sync_time: bool,
    pub(super) min_sync: bool,
    pub(super) no_failed_sync: bool,
}

impl Broken {
    /// Whether it has broken what a verdict names so: `watchLag<=2s`.
    pub(super) fn breaks(self, assumption: &str) -> bool {
        match assumption.split('<').next() {
            Some("watchLag") => self.watch_lag,
            Some("syncTime") => self.sync_time,
            Some("minSync") => self.min_sync,
            Some("noFailedSync") => self.no_failed_sync,
            _ => false,
        }
    }
}
