//! E2: quiet. No counting attempt for the quiet period, on any watched listener, over any family that the pod has an
//! address in.

use super::{
    clock::Monotonic,
    event::{Evidence, SensorState},
    hold::Hold,
    listener::{Family, Port, Protocol},
    settings::Settings,
    watched::Watched,
};

/// Where quiet counts from at the earliest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// The hook's call, where there was one.
    pub(super) drain_started: Option<Monotonic>,
    /// The sensor is not to be trusted: any sign of life in the namespace's counters is taken as an attempt on every
    /// listener.
    pub(super) untrusted: bool,
    /// When the namespace's counters last showed one.
    pub(super) namespace_active: Option<Monotonic>,
}

impl Since {
    fn start(self) -> Option<Monotonic> {
        let active = self.namespace_active.filter(|_| self.untrusted);
        self.drain_started.max(active)
    }

    /// The sensor is not to be trusted, and the counters that could speak in its place cannot be read.
    fn unknown(self, evidence: &Evidence) -> bool {
        self.untrusted && evidence.namespace.is_err()
    }
}

/// From when on no attempt came, as far as is known, on one listener and family. `None`: that is not known.
pub(super) fn quiet_from(port: Port, family: Family, evidence: &Evidence, since: Since) -> Option<Monotonic> {
    // The counters that speak in the place of a sensor that is not trusted know of TCP alone.
    if since.unknown(evidence) || (since.untrusted && port.protocol() == Protocol::Udp) {
        return None;
    }
    let attempts = evidence.attempts.get(&port);
    let known_from = match &evidence.sensor {
        // What the sensor did not count it cannot know to be quiet.
        SensorState::Proven { since: proven, .. } => Some((*proven).max(attempts?.watched_since)),
        SensorState::Unproven { .. } => None,
    };
    let last = attempts.and_then(|attempts| attempts.families.get(family).last());
    let unattributed = evidence.unattributed.get(family).last;
    [known_from, last, unattributed, since.start()].into_iter().flatten().max()
}

/// Whether, and until when, an attempt on any listener and family holds the drain.
pub(super) fn hold(watched: &Watched, evidence: &Evidence, since: Since, settings: &Settings) -> Hold {
    if since.unknown(evidence) {
        return Hold::Open;
    }
    let mut latest = since.start();
    for (port, _) in watched.ports() {
        for family in evidence.asked_families() {
            match quiet_from(port, family, evidence, since) {
                Some(from) => latest = latest.max(Some(from)),
                None => return Hold::Open,
            }
        }
    }
    latest.map_or(Hold::Open, |latest| Hold::until(latest + settings.quiet_period, evidence.taken_at))
}
