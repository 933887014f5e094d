//! E3: handshakes. Closing a listener resets the connections in its accept queue and the handshakes under way, and no
//! statistic of the server shows them.

use std::{collections::BTreeMap, time::Duration};

use super::{
    clock::Monotonic,
    counters::Growth,
    event::{Evidence, HandshakeId, SensorState},
    hold::Hold,
    listener::Port,
    watched::Watched,
};

/// The handshakes under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes {
    /// When each was first seen: its own age is not to be had.
    first_seen: BTreeMap<HandshakeId, (Port, Monotonic)>,
    /// What the sensor showed when they were last read.
    read: Option<SensorView>,
    /// When the last SYN can have come that was answered with a cookie: its handshake leaves no trace until it is done.
    last_cookie: Option<Monotonic>,
}

/// As long as this stays the same, no SYN has come, and so no handshake has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SensorView {
    attempts_anywhere: u64,
    proven_since: Monotonic,
}

impl SensorView {
    fn of(evidence: &Evidence) -> Option<Self> {
        match (&evidence.sensor, evidence.attempts_anywhere) {
            (SensorState::Proven { since, .. }, Some(attempts_anywhere)) => {
                Some(Self { attempts_anywhere, proven_since: *since })
            }
            _ => None,
        }
    }
}

impl Handshakes {
    /// Takes over the cookies that were sent since the reading before.
    pub(super) fn note_cookies(&mut self, growth: Growth) {
        if growth.cookies_sent > 0 {
            self.last_cookie = self.last_cookie.max(growth.latest);
        }
    }

    /// Takes over what the socket table shows, where it was read that deep.
    pub(super) fn update(&mut self, evidence: &Evidence) {
        let Some(connections) = evidence.sockets.as_ref().ok().and_then(|sockets| sockets.connections.as_ref()) else {
            return;
        };
        self.first_seen.retain(|id, _| connections.handshakes.contains_key(id));
        for (id, port) in &connections.handshakes {
            self.first_seen.entry(*id).or_insert((*port, evidence.taken_at));
        }
        self.read = SensorView::of(evidence);
    }

    /// Whether a connection waits to be accepted, or a handshake is young enough to be completed yet.
    ///
    /// A reading without the handshakes can tell that none holds, by the one before it that had them, if a sensor that is
    /// `trusted` has seen no SYN in between: none has begun since then.
    pub(super) fn hold(&self, watched: &Watched, evidence: &Evidence, trusted: bool, grace: Duration) -> Hold {
        let now = evidence.taken_at;
        if let Some(last) = self.last_cookie.filter(|last| *last + grace > now) {
            return Hold::Until(last + grace);
        }
        let (Ok(sockets), Ok(_)) = (&evidence.sockets, &evidence.namespace) else {
            return Hold::Open; // not known to be safe; the bound ends it
        };
        if sockets.listeners.iter().any(|(port, queue)| *queue > 0 && watched.contains(*port)) {
            return Hold::Open;
        }
        let watched = self.first_seen.values().filter(|(port, _)| watched.contains(*port));
        let youngest = watched.map(|(_, first_seen)| *first_seen).max();
        // It may be completed long before.
        let hold = youngest.map_or(Hold::Met, |first_seen| Hold::at_most(first_seen + grace, now));
        let no_syn_since = trusted && self.read.is_some() && self.read == SensorView::of(evidence);
        match (sockets.connections.is_some(), hold) {
            (true, hold) => hold,
            (false, Hold::Met) if no_syn_since => Hold::Met,
            (false, _) => Hold::Unread,
        }
    }
}

/// E4: more established connections than the operator wants at the end.
pub(super) fn connections_hold(watched: &Watched, evidence: &Evidence, at_most: Option<u64>) -> Hold {
    let Some(at_most) = at_most else {
        return Hold::Met;
    };
    let Ok(sockets) = &evidence.sockets else {
        return Hold::Open;
    };
    let Some(established) = sockets.connections.as_ref().and_then(|connections| connections.established.as_ref())
    else {
        return Hold::Unread;
    };
    let watched = established.iter().filter(|(port, _)| watched.contains(**port));
    let established = watched.fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    if established > at_most { Hold::Open } else { Hold::Met }
}
