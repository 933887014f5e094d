//! `packet`: a packet socket with a classic BPF filter, for pods that may not use eBPF. It needs `CAP_NET_RAW` alone, also in
//! a user namespace of the pod's own (`hostUsers: false`).
//!
//! The kernel gives it every packet before traffic control and netfilter see it, on every interface there is and comes. A
//! thread takes the SYNs out as they come; for those that there was no room for the socket keeps count, and they are taken
//! for attempts on every listener.

mod filter;
mod own_test;
mod socket;
mod tally;

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rustix::time::Timespec;

use super::{
    capabilities::{Capability, MissingCapabilities, missing},
    counts::{Around, Counts, Sensor, Uncounted, datagrams_unseen},
};
use crate::{
    config::Network,
    core::{
        clock::Monotonic,
        event::{Depth, SensorState},
        listener::{Port, Protocol},
        verdict::Strategy,
    },
    drive::clock,
    sockets,
};
use own_test::OwnTest;
pub use own_test::OwnTestError;
use socket::PacketSocket;
use tally::Tallies;

/// The largest packet.
const LARGEST: usize = 1 << 16;

/// How often the test looks whether the reader has its packet.
const BETWEEN_LOOKS: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// How long the reader leaves the socket alone when it cannot be read.
const AFTER_AN_ERROR: Duration = Duration::from_millis(10);

/// The sensor.
pub(super) struct Packet {
    shared: Arc<Shared>,
    own_test: OwnTest,
    interfaces: Vec<String>,
    uncounted: Uncounted,
    /// Since when every SYN is sure to be seen.
    proven_since: Option<Monotonic>,
}

struct Shared {
    socket: PacketSocket,
    received: Mutex<Received>,
}

struct Received {
    buffer: Vec<u8>,
    tallies: Tallies,
    own_tests: u64,
}

/// The sensor cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The container may not.
    #[error("{0}")]
    Capabilities(MissingCapabilities),
    /// No socket.
    #[error(
        "the kernel gives the agent no packet socket ({0}); it needs CONFIG_PACKET, and NET_RAW under securityContext.capabilities.add"
    )]
    Socket(#[source] io::Error),
    /// No thread.
    #[error("no thread to read the packet socket: {0}")]
    Thread(#[source] io::Error),
    /// Not testable.
    #[error(transparent)]
    OwnTest(#[from] OwnTestError),
}

impl Packet {
    /// Begins to count in the caller's namespace.
    pub(super) fn start(ignored: &[Network]) -> Result<Self, PacketError> {
        let mut sensor = Self::open(ignored)?;
        sensor.test()?;
        let shared = Arc::clone(&sensor.shared);
        // It ends with the process: a socket that nobody empties would take SYNs for lost.
        let reader = move || {
            while shared.socket.wait(None).is_ok() {
                if let Err(error) = shared.receive() {
                    tracing::debug!(%error, "the packet socket cannot be read at the moment");
                    clock::wait_until(clock::now() + AFTER_AN_ERROR);
                }
            }
        };
        thread::Builder::new().name("packets".to_owned()).spawn(reader).map_err(PacketError::Thread)?;
        Ok(sensor)
    }

    /// Whether it could be begun, by its own test. Leaves nothing behind.
    pub(super) fn try_out() -> Result<(), PacketError> {
        Self::open(&[])?.test().map_err(PacketError::from)
    }

    fn open(ignored: &[Network]) -> Result<Self, PacketError> {
        if let Some(lacking) = missing(&[Capability::NetRaw]) {
            return Err(PacketError::Capabilities(lacking));
        }
        let socket = PacketSocket::open().map_err(PacketError::Socket)?;
        let received = Received { buffer: vec![0; LARGEST], tallies: Tallies::new(ignored), own_tests: 0 };
        let shared = Arc::new(Shared { socket, received: Mutex::new(received) });
        let uncounted = Uncounted::default();
        Ok(Self { shared, own_test: OwnTest::open()?, interfaces: Vec::new(), uncounted, proven_since: None })
    }

    fn test(&mut self) -> Result<(), OwnTestError> {
        let tests = || {
            self.shared.receive().map_err(OwnTestError::Receive)?;
            Ok(self.shared.lock().own_tests)
        };
        // The reader may take the packet first: then nothing wakes this thread before the time is over.
        let more = || self.shared.socket.wait(Some(BETWEEN_LOOKS)).map_err(OwnTestError::Receive);
        self.own_test.run(tests, more)
    }

    fn state(&mut self, received: io::Result<()>, test: bool) -> SensorState {
        let strategy = Strategy::Packet;
        let why = match received {
            Err(error) => Some(format!("the packet socket cannot be read: {error}")),
            Ok(()) if test || self.proven_since.is_none() => self.test().err().map(|error| error.to_string()),
            Ok(()) => None,
        };
        match why {
            Some(why) => {
                self.proven_since = None;
                SensorState::Unproven { strategy, why }
            }
            None => SensorState::Proven { strategy, since: *self.proven_since.get_or_insert_with(clock::now) },
        }
    }
}

impl Sensor for Packet {
    fn strategy(&self) -> Strategy {
        Strategy::Packet
    }

    fn interfaces(&self) -> Vec<String> {
        self.interfaces.clone()
    }

    /// One socket is for all interfaces, from the moment on at which they come.
    fn blind(&self) -> Option<Duration> {
        None
    }

    fn watch(&mut self, port: Port) -> Result<(), String> {
        let counted = match port.protocol() {
            Protocol::Tcp => {
                self.shared.lock().tallies.watch(port, clock::now());
                Ok(())
            }
            Protocol::Udp => Err(datagrams_unseen(port)),
        };
        self.uncounted.note(port, &counted);
        counted
    }

    fn read(&mut self, around: Around<'_>) -> Counts {
        if let Some(interfaces) = around.interfaces {
            self.interfaces = interfaces.iter().map(|interface| interface.name.clone()).collect();
        }
        let received = self.shared.receive();
        let state = self.state(received, around.test);
        let received = self.shared.lock();
        Counts {
            state,
            attempts_anywhere: Some(received.tallies.anywhere()),
            attempts: received.tallies.ports(),
            unattributed: received.tallies.unattributed(),
            not_observed: self.uncounted.not_observed().collect(),
            blind: Duration::ZERO,
        }
    }
}

impl Shared {
    /// Takes in every packet that has come before the call.
    fn receive(&self) -> io::Result<()> {
        let mut received = self.lock();
        // The frames stay in order: who waits for this lock finds what came before its call taken in, or still there.
        received.take_in(&self.socket)
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Received {
    fn take_in(&mut self, socket: &PacketSocket) -> io::Result<()> {
        let mut open = Open::default();
        for _ in 0..socket.room() {
            let Some(length) = socket.receive(&mut self.buffer)? else { break };
            match length {
                filter::ON_LOOPBACK => self.tallies.inside(),
                filter::OWN_TEST => self.own_tests += 1,
                _ => {
                    let packet = self.buffer.get(..length).unwrap_or_default();
                    // After it was received, and so never too early: quiet is counted from it.
                    self.tallies.packet(packet, clock::now(), |port| open.is_open(port));
                }
            }
        }
        let dropped = socket.dropped()?;
        if dropped > 0 {
            self.tallies.lost(dropped, clock::now());
        }
        Ok(())
    }
}

/// Which ports anything listens on, asked once for all the packets of one time, and not before there is one.
#[derive(Default)]
struct Open(Option<Result<crate::core::event::Sockets, String>>);

impl Open {
    /// Where it is not known, somebody may.
    fn is_open(&mut self, port: Port) -> bool {
        let sockets = self.0.get_or_insert_with(|| sockets::read(Depth::Listeners, &std::collections::BTreeSet::new()));
        sockets.as_ref().map_or(true, |sockets| sockets.listeners.contains_key(&port))
    }
}
