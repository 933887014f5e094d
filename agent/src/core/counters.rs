//! What the namespace's counters show from one reading to the next.

use super::{
    clock::Monotonic,
    event::{Evidence, NamespaceCounters, SensorState},
    listener::Family,
    watched::Watched,
};

/// The newest counters that could be read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    seen: Option<(Monotonic, NamespaceCounters)>,
    active: Option<Monotonic>,
}

/// How they have grown since the reading before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// SYNs that were dropped unanswered.
    pub(super) dropped: u64,
    /// SYNs that were answered with a cookie.
    pub(super) cookies_sent: u64,
    /// The latest time at which such a SYN can have come to a watched port; `None`: none can have.
    pub(super) latest: Option<Monotonic>,
}

impl Counters {
    /// Takes over what a reading shows; `None` if it shows none.
    pub(super) fn update(&mut self, evidence: &Evidence, watched: &Watched, trusted: bool) -> Option<Growth> {
        let counters = *evidence.namespace.as_ref().ok()?;
        let before = self.seen.replace((evidence.taken_at, counters));
        if before.is_none_or(|(_, before)| before != counters) {
            self.active = Some(evidence.taken_at);
        }
        // What was counted before the first reading may have been just now.
        let (at, before) = before.map_or((None, NamespaceCounters::default()), |(at, before)| (Some(at), before));
        Some(Growth {
            dropped: counters.dropped.saturating_sub(before.dropped),
            cookies_sent: counters.cookies_sent.saturating_sub(before.cookies_sent),
            latest: latest(evidence, watched, at.filter(|_| trusted)),
        })
    }

    /// When they last showed a sign of life, at the latest: the time of the reading that showed it, or of the first one.
    pub(super) fn active(&self) -> Option<Monotonic> {
        self.active
    }
}

/// The time of the last attempt, where a sensor that can be trusted saw every one since the reading `before`; else the
/// time of this reading.
fn latest(evidence: &Evidence, watched: &Watched, before: Option<Monotonic>) -> Option<Monotonic> {
    let (SensorState::Proven { since, .. }, Some(before)) = (&evidence.sensor, before) else {
        return Some(evidence.taken_at);
    };
    let counted = |port| evidence.attempts.get(&port).is_some_and(|attempts| attempts.watched_since <= before);
    if *since > before || !watched.ports().all(|(port, _)| counted(port)) {
        return Some(evidence.taken_at);
    }
    let attempts = evidence.attempts.values().flat_map(|port| [port.families.v4.last(), port.families.v6.last()]);
    let unattributed = Family::ALL.map(|family| evidence.unattributed.get(family).last);
    attempts.chain(unattributed).flatten().max()
}
