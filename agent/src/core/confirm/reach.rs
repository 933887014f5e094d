//! C12: pending, or unobservable.

use crate::core::{clock::Monotonic, cluster::HealthReport};

use super::Bounds;

/// A node's operating system (label `kubernetes.io/os`). Network policies and proxies are the same for all nodes of
/// one, as a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatingSystem {
    /// Linux.
    Linux,
    /// Windows.
    Windows,
    /// It has no such label, or another value.
    Unknown,
}

/// What has ever answered this agent: the operating systems of which a node has given a status, so that their health
/// servers can be reached, and the fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is of something else, and any may be so together")]
pub struct StatusGiven {
    linux: bool,
    windows: bool,
    unknown: bool,
    fence: bool,
}

/// Why a node is unobservable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its health server answers, but not with a status of this family; in words.
    NoStatus(String),
    /// Nothing was heard of it, nor has any node of its operating system ever given a status; in words.
    Silent(String),
    /// Its Node object is gone.
    Gone,
}

/// How far one node's status over one family is within reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reach {
    /// It is, or nobody knows yet.
    Awaited,
    /// It refuses, resets or times out.
    Silent(OperatingSystem),
    /// It answers, without a status.
    NoStatus,
    /// The Node object is gone.
    Gone,
}

/// What came of the requests so far, for one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reached {
    reach: Reach,
    gave_status: bool,
    no_status_from: Option<Monotonic>,
}

// === impl StatusGiven ===

impl StatusGiven {
    /// Whether a node of this operating system has given a status.
    pub fn has(self, system: OperatingSystem) -> bool {
        match system {
            OperatingSystem::Linux => self.linux,
            OperatingSystem::Windows => self.windows,
            OperatingSystem::Unknown => self.unknown,
        }
    }

    /// Whether the fence has answered.
    pub fn has_fence(self) -> bool {
        self.fence
    }

    pub(super) fn add_fence(&mut self) {
        self.fence = true;
    }

    pub(crate) fn add(&mut self, system: OperatingSystem) {
        match system {
            OperatingSystem::Linux => self.linux = true,
            OperatingSystem::Windows => self.windows = true,
            OperatingSystem::Unknown => self.unknown = true,
        }
    }
}

// === impl Reach ===

impl Reach {
    /// Whether nothing is to be expected any more.
    pub(super) fn is_unobservable(self, given: StatusGiven) -> bool {
        match self {
            Self::Awaited => false,
            Self::Silent(system) => !given.has(system),
            Self::NoStatus | Self::Gone => true,
        }
    }
}

// === impl Reached ===

impl Reached {
    /// Nothing was asked yet.
    pub(super) const NOT_ASKED: Self = Self { reach: Reach::Awaited, gave_status: false, no_status_from: None };

    /// How far the status is within reach.
    pub(super) fn reach(&self) -> Reach {
        self.reach
    }

    /// Nothing is known of it by our own requests.
    pub(super) fn is_untouched(&self) -> bool {
        *self == Self::NOT_ASKED
    }

    /// There was a status.
    pub(super) fn status(&mut self) {
        *self = Self { reach: Reach::Awaited, gave_status: true, no_status_from: None };
    }

    /// There was an answer without a status. A kube-proxy that is starting answers so for a moment, and must not end a
    /// drain by it: so a node that gave a status before is awaited, and another is until it answers so again,
    /// `watchLag` later, without a silence in between: after one, another process may be starting.
    pub(super) fn no_status(&mut self, report: &HealthReport, bounds: &Bounds) {
        let from = *self.no_status_from.get_or_insert(report.received_at);
        let for_good = !self.gave_status && report.sent_at >= from + bounds.watch_lag;
        self.reach = if for_good { Reach::NoStatus } else { Reach::Awaited };
    }

    /// There was no answer.
    pub(super) fn silent(&mut self, system: OperatingSystem) {
        self.reach = Reach::Silent(system);
        self.no_status_from = None;
    }

    /// The node's operating system has become known.
    pub(super) fn is_of(&mut self, system: OperatingSystem) {
        if let Reach::Silent(of) = &mut self.reach {
            *of = system;
        }
    }

    /// The Node object is gone.
    pub(super) fn gone(&mut self) {
        self.reach = Reach::Gone;
    }
}
