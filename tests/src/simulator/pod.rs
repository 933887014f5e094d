//! The pod's kernel: what comes to the one port it serves, and the evidence that a reading makes of it.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lastsyn::core::{
    class::Class,
    clock::Monotonic,
    event::{
        ByFamily, Connections, Depth, Evidence, HandshakeId, NamespaceCounters, PortAttempts, SensorState, Sockets,
        Tally,
    },
    listener::{Family, Port},
    verdict::Strategy,
};

use super::{
    chance::{Chance, Stream},
    plan::Traffic,
};

/// The pod's network namespace.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) chance: Chance,
    pub(super) traffic: Traffic,
    port: Port,
    families: ByFamily<bool>,
    /// Whether its server listens.
    pub(super) listens: bool,
    sensor: SensorState,
    /// The programs run, whatever is known of them.
    sees: bool,
    counters: NamespaceCounters,
    anywhere: u64,
    attempts: Option<PortAttempts>,
    /// Handshakes under way, and when each began.
    handshakes: VecDeque<(HandshakeId, Monotonic)>,
    next_handshake: u64,
    /// The accept queue.
    pub(super) queue: u64,
    pub(super) established: u64,
    /// Until then SYNs are dropped unanswered.
    overflows_until: Monotonic,
    /// Every SYN that came, and whether the sensor saw it.
    pub(super) came: VecDeque<Came>,
    /// Handshakes that were completed, and whose SYN the sensor missed.
    pub(super) missed: u64,
    /// SYNs that the sensor saw, and that completed nothing: by so many the witness is dull.
    pub(super) unfinished: u64,
}

/// A SYN that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) at: Monotonic,
    pub(super) seen: bool,
}

/// What becomes of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is refused: nobody listens.
    Refused,
    /// It is dropped unanswered: the client sends it again.
    Dropped,
    /// It is answered. The handshake is completed after this, or never.
    Answered(HandshakeId, Option<Duration>),
    /// Its handshake is completed, and the connection taken, at once.
    Taken,
    /// Its handshake is completed, and the connection waits so long to be taken.
    Waits(Duration),
}

impl Pod {
    pub(super) fn new(seed: u64, families: &[Family], traffic: Traffic, now: Monotonic) -> Self {
        let strategy = Strategy::Tcx;
        Self {
            chance: Chance::of(seed, Stream::Pod),
            traffic,
            port: port(),
            families: ByFamily { v4: families.contains(&Family::V4), v6: families.contains(&Family::V6) },
            listens: true,
            sensor: SensorState::Proven { strategy, since: now },
            sees: true,
            counters: NamespaceCounters { passive_opens: 1000, ..NamespaceCounters::default() },
            anywhere: 0,
            attempts: None,
            handshakes: VecDeque::new(),
            next_handshake: 0,
            queue: 0,
            established: traffic.established,
            overflows_until: now,
            came: VecDeque::new(),
            missed: 0,
            unfinished: 0,
        }
    }

    /// The sensor is asked to count the port.
    pub(super) fn watch(&mut self, now: Monotonic) {
        self.attempts.get_or_insert(PortAttempts { watched_since: now, families: ByFamily::default() });
    }

    /// Another agent's sensor takes the place of the one before.
    pub(super) fn sensor_anew(&mut self, now: Monotonic) {
        self.sees = true;
        self.sensor = SensorState::Proven { strategy: Strategy::Tcx, since: now };
        self.attempts = None;
        self.anywhere = 0;
        self.missed = 0;
        self.unfinished = 0;
    }

    /// From here on the witness compares.
    pub(super) fn drain_starts(&mut self) {
        self.missed = 0;
        self.unfinished = self.handshakes.len() as u64;
    }

    /// The programs are gone, and the agent notices, or not.
    pub(super) fn break_sensor(&mut self, noticed: bool) {
        self.sees = false;
        if noticed {
            self.sensor = SensorState::Unproven { strategy: Strategy::Tcx, why: "the programs are gone".to_owned() };
        }
    }

    /// They are back, and proven anew where it was noticed.
    pub(super) fn mend_sensor(&mut self, now: Monotonic) {
        self.sees = true;
        if let SensorState::Unproven { .. } = self.sensor {
            self.sensor = SensorState::Proven { strategy: Strategy::Tcx, since: now };
        }
    }

    /// The server is too slow for a while: SYNs are dropped.
    pub(super) fn overflow(&mut self, until: Monotonic) {
        self.overflows_until = self.overflows_until.max(until);
    }

    /// A SYN comes.
    pub(super) fn syn(&mut self, family: Family, now: Monotonic) -> Fate {
        if self.came.len() == 256 {
            self.came.pop_front();
        }
        self.came.push_back(Came { at: now, seen: self.sees });
        if self.sees {
            self.anywhere += 1;
            let class = if self.listens { Class::New } else { Class::Refused };
            let attempts = self.attempts.as_mut();
            if let Some(tally) = attempts.and_then(|attempts| attempts.families.get_mut(family).get_mut(class)) {
                *tally = Tally { count: tally.count + 1, last: Some(now) };
            }
        }
        if !self.listens {
            self.counters.resets_sent += 1;
            return Fate::Refused;
        }
        if now < self.overflows_until {
            self.counters.dropped += 1;
            self.unfinished += u64::from(self.sees);
            return Fate::Dropped;
        }
        if self.chance.percent(self.traffic.slow_handshakes) {
            self.next_handshake += 1;
            let id = HandshakeId(self.next_handshake);
            self.handshakes.push_back((id, now));
            self.unfinished += u64::from(self.sees);
            let length = (!self.chance.one_in(8)).then(|| self.chance.waiting(millis(120), millis(6000)));
            return Fate::Answered(id, length);
        }
        self.complete_one();
        self.missed += u64::from(!self.sees);
        if self.chance.percent(self.traffic.slow_accepts) {
            self.queue += 1;
            return Fate::Waits(self.chance.waiting(millis(60), millis(2500)));
        }
        self.established += 1;
        Fate::Taken
    }

    /// A handshake under way is completed. `false` if its listener has gone.
    pub(super) fn complete(&mut self, id: HandshakeId) -> bool {
        let under_way = self.handshakes.iter().position(|(handshake, _)| *handshake == id);
        let Some(index) = under_way.filter(|_| self.listens) else { return false };
        self.handshakes.remove(index);
        self.complete_one();
        self.queue += 1;
        true
    }

    pub(super) fn accept(&mut self) {
        if self.queue > 0 {
            self.queue -= 1;
            self.established += 1;
        }
    }

    pub(super) fn close(&mut self) {
        self.established = self.established.saturating_sub(1);
    }

    /// Whether closing the listener now would reset a connection that waits, or a handshake younger than `grace` at
    /// `read`, when both were last looked at.
    pub(super) fn would_reset(&self, grace: Duration, read: Monotonic) -> bool {
        self.handshakes.iter().any(|(_, begun)| *begun <= read && *begun + grace > read)
    }

    fn complete_one(&mut self) {
        self.counters.passive_opens += 1;
    }

    /// Reads it all.
    pub(super) fn evidence(&self, depth: Depth, now: Monotonic) -> Evidence {
        let connections = || Connections {
            handshakes: self.handshakes.iter().map(|(id, _)| (*id, self.port)).collect(),
            established: (depth >= Depth::Connections).then(|| BTreeMap::from([(self.port, self.established)])),
        };
        let listeners = if self.listens { BTreeMap::from([(self.port, self.queue)]) } else { BTreeMap::new() };
        Evidence {
            taken_at: now,
            namespace: Ok(self.counters),
            sensor: self.sensor.clone(),
            attempts_anywhere: Some(self.anywhere),
            attempts: self.attempts.iter().map(|attempts| (self.port, *attempts)).collect(),
            unattributed: ByFamily::default(),
            families: self.families,
            sockets: Ok(Sockets { listeners, connections: (depth >= Depth::Handshakes).then(connections) }),
            passive_opens_after: Some(self.counters.passive_opens),
            blind: Duration::ZERO,
            not_observed: Vec::new(),
        }
    }
}

/// The port that the pod serves.
pub(super) fn port() -> Port {
    // 80 is a port: the other case cannot be.
    Port::try_from(80).unwrap_or_else(|_| unreachable!("port 80 is not 0"))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
