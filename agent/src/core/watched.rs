//! S9: the watched set. It follows the open listeners at rest, with some delay; from a drain's start it only grows.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    clock::Monotonic,
    event::Evidence,
    journal::{Journal, Transition},
    listener::Port,
    settings::Watch,
};

/// How long a closed listener stays watched at rest. A server that closes its listeners just before the hook is called
/// is what the drain is to tell of.
const KEPT: Duration = Duration::from_secs(10);

/// The watched ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    ports: BTreeMap<Port, WatchedPort>,
}

/// One watched port.
#[derive(Clone, Debug, Default)]
pub(super) struct WatchedPort {
    /// Whether a socket listens on it.
    pub(super) open: bool,
    /// One has been seen on it.
    found: bool,
    /// When it was first seen without one since it had one; `None` while it has one.
    pub(super) closed_at: Option<Monotonic>,
    /// The sensor has been asked to count it.
    asked: bool,
}

impl Watched {
    /// What the operator listed is watched from the start.
    pub(super) fn new(watch: &Watch) -> Self {
        let ports = match watch {
            Watch::Auto { .. } => BTreeMap::new(),
            Watch::Ports(ports) => ports.iter().map(|port| (*port, WatchedPort::default())).collect(),
        };
        Self { ports }
    }

    /// Takes over what the socket table shows. Returns the ports that the sensor is to count from now on.
    pub(super) fn update(
        &mut self,
        evidence: &Evidence,
        watch: &Watch,
        draining: bool,
        journal: &mut Journal,
    ) -> BTreeSet<Port> {
        if let Ok(sockets) = &evidence.sockets {
            for port in sockets.listeners.keys().filter(|port| watch.wants(**port)) {
                let entry = self.ports.entry(*port).or_default();
                if !std::mem::replace(&mut entry.found, true) {
                    journal.record(evidence.taken_at, Transition::ListenerFound(*port));
                } else if !entry.open {
                    journal.record(evidence.taken_at, Transition::ListenerReopened(*port));
                }
                entry.open = true;
                entry.closed_at = None;
            }
            for (port, entry) in self.ports.iter_mut().filter(|(port, _)| !sockets.listeners.contains_key(port)) {
                entry.closed_at = entry.closed_at.or(Some(evidence.taken_at));
                if std::mem::replace(&mut entry.open, false) {
                    journal.record(evidence.taken_at, Transition::ListenerClosed(*port));
                }
            }
            if !draining && matches!(watch, Watch::Auto { .. }) {
                self.ports.retain(|_, entry| entry.closed_at.is_none_or(|at| at + KEPT > evidence.taken_at));
            }
        }
        let unasked = self.ports.iter_mut().filter_map(|(port, entry)| {
            let asked = std::mem::replace(&mut entry.asked, true);
            (!asked).then_some(*port)
        });
        unasked.collect()
    }

    /// All of them.
    pub(super) fn ports(&self) -> impl Iterator<Item = (Port, &WatchedPort)> {
        self.ports.iter().map(|(port, entry)| (*port, entry))
    }

    /// Whether a socket listens on any of them.
    pub(super) fn any_open(&self) -> bool {
        self.ports.values().any(|entry| entry.open)
    }

    /// Whether this one is watched.
    pub(super) fn contains(&self, port: Port) -> bool {
        self.ports.contains_key(&port)
    }
}
