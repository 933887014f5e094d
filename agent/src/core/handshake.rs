//! E3: handshakes. Closing a listener resets the connections in its accept queue and the handshakes under way, and no
//! statistic of the server shows them.

use std::{collections::BTreeMap, time::Duration};

use super::{
    clock::Monotonic,
    event::{Evidence, HandshakeId},
    hold::Hold,
    watched::Watched,
};

/// The handshakes under way, with the time at which each was first seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes {
    first_seen: BTreeMap<HandshakeId, Monotonic>,
}

impl Handshakes {
    /// Takes over what the socket table shows, where it was read that deep.
    pub(super) fn update(&mut self, evidence: &Evidence) {
        let Some(connections) = evidence.sockets.as_ref().ok().and_then(|sockets| sockets.connections.as_ref()) else {
            return;
        };
        self.first_seen.retain(|id, _| connections.handshakes.contains_key(id));
        for id in connections.handshakes.keys() {
            self.first_seen.entry(*id).or_insert(evidence.taken_at);
        }
    }

    /// Whether a connection waits to be accepted, or a handshake is young enough to be completed yet.
    pub(super) fn hold(&self, watched: &Watched, evidence: &Evidence, grace: Duration) -> Hold {
        let Ok(sockets) = &evidence.sockets else {
            return Hold::Open; // not known to be safe; the bound ends it
        };
        if sockets.listeners.iter().any(|(port, queue)| *queue > 0 && watched.contains(*port)) {
            return Hold::Open;
        }
        let Some(connections) = &sockets.connections else {
            return Hold::Unread;
        };
        let youngest = connections
            .handshakes
            .iter()
            .filter(|(_, port)| watched.contains(**port))
            .filter_map(|(id, _)| self.first_seen.get(id))
            .max();
        youngest.map_or(Hold::Met, |first_seen| Hold::until(*first_seen + grace, evidence.taken_at))
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
    let Some(connections) = &sockets.connections else {
        return Hold::Unread;
    };
    let established: u64 =
        connections.established.iter().filter(|(port, _)| watched.contains(**port)).map(|(_, count)| *count).sum();
    if established > at_most { Hold::Open } else { Hold::Met }
}
