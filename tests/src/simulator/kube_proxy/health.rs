//! What a node's health server answers, and the health-check node ports.

use std::time::Duration;

use lastsyn::core::{
    clock::Monotonic,
    cluster::{FamilyHealth, HealthStatus},
    listener::Family,
};

use super::{super::node::Health, KubeProxy, place};

/// kube-proxy's `healthTimeout`: twice its `syncPeriod`.
const HEALTH_TIMEOUT: Duration = Duration::from_mins(1);

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Answer {
    /// Nobody listens.
    Refused,
    /// No answer: it stands still.
    Silent,
    /// An answer without a status.
    NoStatus,
    Status(HealthStatus),
}

impl KubeProxy {
    /// What it answers to a health request.
    pub(in super::super) fn answer(&self, now: Monotonic) -> Answer {
        match self.profile.health {
            _ if !self.up => Answer::Refused,
            Health::Refused => Answer::Refused,
            _ if self.is_frozen(now) => Answer::Silent,
            Health::NoStatus => Answer::NoStatus,
            Health::Status => {
                let of = |family: Family| {
                    let proxier = &self.proxiers[place(family)];
                    let healthy = proxier.pending.is_none_or(|since| now.since(since) < HEALTH_TIMEOUT);
                    proxier.stamp.map(|last_updated| FamilyHealth { last_updated, healthy })
                };
                let status = HealthStatus { v4: of(Family::V4), v6: of(Family::V6) };
                if status.v4.is_none() && status.v6.is_none() { Answer::NoStatus } else { Answer::Status(status) }
            }
        }
    }

    /// What a Service's `healthCheckNodePort` answers here: its number of ready endpoints.
    pub(in super::super) fn local_endpoints(&self, service: usize) -> u64 {
        self.local[service]
    }

    /// The fence's marker, as its Service's `healthCheckNodePort` shows it: after a whole sync, by the process.
    pub(in super::super) fn shown(&self, family: Family) -> u32 {
        self.proxiers[place(family)].port
    }
}
