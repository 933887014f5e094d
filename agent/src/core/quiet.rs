//! E2: quiet. No counting attempt for the quiet period, on any watched listener, over any family that the pod has an
//! address in.

use super::{
    clock::Monotonic,
    event::{Evidence, SensorState},
    hold::Hold,
    listener::{Family, Port},
    settings::Settings,
    watched::Watched,
};

/// From when on no attempt came, as far as is known, on one listener and family. `None`: nothing counts it yet.
pub(super) fn quiet_from(port: Port, family: Family, evidence: &Evidence, since: Since) -> Option<Monotonic> {
    let attempts = evidence.attempts.get(&port);
    let known_from = match &evidence.sensor {
        // What the sensor did not count it cannot know to be quiet.
        SensorState::Proven { since: proven, .. } => Some((*proven).max(attempts?.watched_since)),
        SensorState::Unproven { .. } => None,
    };
    let last = attempts.and_then(|attempts| attempts.families.get(family).last());
    let unattributed = evidence.unattributed.get(family).last;
    [known_from, last, unattributed, Some(since.start())].into_iter().flatten().max()
}

/// Where quiet counts from at the earliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// The hook's call.
    pub(super) drain_started: Monotonic,
    /// Where the sensor is not to be trusted: when the namespace's counters last showed a sign of life. Any is taken as
    /// an attempt on every listener.
    pub(super) untrusted_active: Option<Monotonic>,
}

impl Since {
    fn start(self) -> Monotonic {
        self.drain_started.max(self.untrusted_active.unwrap_or(self.drain_started))
    }
}

/// Whether, and until when, an attempt on any listener and family holds the drain.
pub(super) fn hold(watched: &Watched, evidence: &Evidence, since: Since, settings: &Settings) -> Hold {
    let mut latest = since.start();
    for (port, _) in watched.ports() {
        for family in Family::ALL.into_iter().filter(|family| *evidence.families.get(*family)) {
            match quiet_from(port, family, evidence, since) {
                Some(from) => latest = latest.max(from),
                None => return Hold::Open,
            }
        }
    }
    Hold::until(latest + settings.quiet_period, evidence.taken_at)
}
