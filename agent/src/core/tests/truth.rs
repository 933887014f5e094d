//! What is true in a scripted world, and the evidence that a reading makes of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::core::{
    class::Class,
    clock::Monotonic,
    event::{
        ByFamily, Connections, Depth, Evidence, HandshakeId, NamespaceCounters, PortAttempts, SensorState, Sockets,
        Tally,
    },
    listener::{Family, Port},
    verdict::{NotObserved, Strategy},
};

/// A SYN that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) at: Monotonic,
    pub(super) port: Port,
    pub(super) family: Family,
}

/// The world as it is, seen or not.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) families: ByFamily<bool>,
    /// Open ports with the length of their accept queues.
    pub(super) listeners: BTreeMap<Port, u64>,
    pub(super) handshakes: BTreeMap<HandshakeId, Port>,
    pub(super) established: BTreeMap<Port, u64>,
    pub(super) sockets_broken: Option<String>,
    pub(super) counters: NamespaceCounters,
    pub(super) counters_broken: Option<String>,
    pub(super) sensor: SensorState,
    pub(super) blind: Duration,
    /// The programs run, whatever is known of them.
    pub(super) sees: bool,
    pub(super) attempts: BTreeMap<Port, PortAttempts>,
    pub(super) unattributed: ByFamily<Tally>,
    pub(super) anywhere: u64,
    /// Ports that find no slot.
    pub(super) uncountable: BTreeSet<Port>,
    pub(super) not_observed: Vec<NotObserved>,
    pub(super) came: Vec<Came>,
    /// When each handshake began.
    begun: BTreeMap<HandshakeId, Monotonic>,
}

pub(super) fn port(number: u16) -> Port {
    Port::try_from(number).unwrap()
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Truth {
    /// Ports 80 and 443 are open, the pod has both families, and the sensor has just been proven.
    pub(super) fn new(now: Monotonic) -> Self {
        Self {
            families: ByFamily { v4: true, v6: true },
            listeners: [(port(80), 0), (port(443), 0)].into(),
            handshakes: BTreeMap::new(),
            established: BTreeMap::new(),
            sockets_broken: None,
            counters: NamespaceCounters::default(),
            counters_broken: None,
            sensor: SensorState::Proven { strategy: Strategy::Tcx, since: now },
            blind: Duration::ZERO,
            sees: true,
            attempts: BTreeMap::new(),
            unattributed: ByFamily::default(),
            anywhere: 0,
            uncountable: BTreeSet::new(),
            not_observed: Vec::new(),
            came: Vec::new(),
            begun: BTreeMap::new(),
        }
    }

    /// The sensor is asked to count a port.
    pub(super) fn watch(&mut self, port: Port, now: Monotonic) {
        if self.sensor.strategy() != Strategy::Counters && !self.uncountable.contains(&port) {
            self.attempts.entry(port).or_insert(PortAttempts { watched_since: now, families: ByFamily::default() });
        }
    }

    /// A SYN comes, and nothing more of it.
    pub(super) fn syn(&mut self, port: Port, family: Family, now: Monotonic) {
        self.syn_of(Class::New, port, family, now);
    }

    /// A SYN of any class comes.
    pub(super) fn syn_of(&mut self, class: Class, port: Port, family: Family, now: Monotonic) {
        if !matches!(class, Class::Stray | Class::Probe | Class::Ignored) {
            self.came.push(Came { at: now, port, family });
        }
        if self.sees {
            self.anywhere += 1;
            if let Some(attempts) = self.attempts.get_mut(&port) {
                count(attempts.families.get_mut(family).get_mut(class).unwrap(), now);
            }
        }
    }

    /// Something comes that may be a SYN: to this port, or nobody knows where to.
    pub(super) fn opaque(&mut self, port: Option<Port>, family: Family, now: Monotonic) {
        if self.sees {
            self.anywhere += 1;
            match port.map(|port| self.attempts.get_mut(&port)) {
                None => count(self.unattributed.get_mut(family), now),
                Some(Some(attempts)) => count(attempts.families.get_mut(family).get_mut(Class::Opaque).unwrap(), now),
                Some(None) => {}
            }
        }
    }

    /// A client connects and is served.
    pub(super) fn connect(&mut self, port: Port, family: Family, now: Monotonic) {
        self.syn(port, family, now);
        self.counters.passive_opens += 1;
    }

    /// A SYN comes and is dropped unanswered.
    pub(super) fn drop_syn(&mut self, port: Port, family: Family, now: Monotonic) {
        self.syn(port, family, now);
        self.counters.dropped += 1;
    }

    /// A SYN comes and is answered; its handshake stays under way.
    pub(super) fn begin(&mut self, port: Port, family: Family, now: Monotonic) -> HandshakeId {
        self.syn(port, family, now);
        let id = HandshakeId(self.begun.len() as u64 + 1);
        self.begun.insert(id, now);
        self.handshakes.insert(id, port);
        id
    }

    /// The ports whose listener would reset something if it closed now: a connection that waits to be accepted, or a
    /// handshake that is younger than `grace`.
    pub(super) fn would_reset(&self, grace: Duration, now: Monotonic) -> BTreeSet<Port> {
        let young = |id: &HandshakeId| self.begun.get(id).is_some_and(|begun| *begun + grace > now);
        let handshakes = self.handshakes.iter().filter(|(id, _)| young(id)).map(|(_, port)| *port);
        let queued = self.listeners.iter().filter(|(_, queue)| **queue > 0).map(|(port, _)| *port);
        handshakes.chain(queued).collect()
    }

    /// A handshake under way is completed.
    pub(super) fn complete(&mut self, id: HandshakeId) {
        if self.handshakes.remove(&id).is_some() {
            self.counters.passive_opens += 1;
        }
    }

    /// A SYN comes and is answered with a cookie.
    pub(super) fn send_cookie(&mut self, port: Port, family: Family, now: Monotonic) {
        self.syn(port, family, now);
        self.counters.cookies_sent += 1;
    }

    /// The client of a cookie answers.
    pub(super) fn take_cookie(&mut self) {
        self.counters.cookies_received += 1;
        self.counters.passive_opens += 1;
    }

    /// The programs are gone, and the agent notices.
    pub(super) fn break_sensor(&mut self, why: &str) {
        self.sees = false;
        self.sensor = SensorState::Unproven { strategy: self.sensor.strategy(), why: why.to_owned() };
    }

    /// They are back, and proven.
    pub(super) fn mend_sensor(&mut self, now: Monotonic) {
        self.sees = true;
        self.sensor = SensorState::Proven { strategy: self.sensor.strategy(), since: now };
    }

    /// There are no programs: the counters are all there is.
    pub(super) fn counters_only(&mut self) {
        self.sees = false;
        self.attempts.clear();
        self.sensor = SensorState::Unproven { strategy: Strategy::Counters, why: "no eBPF".to_owned() };
    }

    /// Reads it all.
    pub(super) fn evidence(&self, depth: Depth, now: Monotonic) -> Evidence {
        let connections = || Connections {
            handshakes: self.handshakes.clone(),
            established: (depth >= Depth::Connections).then(|| self.established.clone()),
        };
        let sockets =
            Sockets { listeners: self.listeners.clone(), connections: (depth >= Depth::Handshakes).then(connections) };
        Evidence {
            taken_at: now,
            namespace: self.counters_broken.clone().map_or(Ok(self.counters), Err),
            sensor: self.sensor.clone(),
            blind: self.blind,
            attempts_anywhere: (self.sensor.strategy() == Strategy::Tcx).then_some(self.anywhere),
            attempts: self.attempts.clone(),
            unattributed: self.unattributed,
            families: self.families,
            sockets: self.sockets_broken.clone().map_or(Ok(sockets), Err),
            passive_opens_after: self.counters_broken.is_none().then_some(self.counters.passive_opens),
            not_observed: self.not_observed.clone(),
        }
    }
}

fn count(tally: &mut Tally, now: Monotonic) {
    *tally = Tally { count: tally.count + 1, last: Some(now) };
}
