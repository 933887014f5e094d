//! What every sensor is, whatever the kernel lets it use.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv6Addr,
    time::Duration,
};

use super::{
    interfaces::Interface,
    kubelet::{Asker, ProbeStatus},
    sources::Kept,
};
use crate::core::{
    clock::Monotonic,
    event::{ByFamily, PortAttempts, SensorState, Tally},
    listener::Port,
    probe::ProbePort,
    verdict::{NotObserved, Strategy},
};

/// Counts SYNs per watched port and family, and knows whether it sees them all.
pub trait Sensor {
    /// Where the counts come from.
    fn strategy(&self) -> Strategy;

    /// Whether it can tell the pod's SYNs from those of others.
    fn is_scoped(&self) -> bool {
        true
    }

    /// The names of the watched interfaces.
    fn interfaces(&self) -> Vec<String>;

    /// For how long, in all, an interface may have been up and not watched: never less than it was. `None` where
    /// interfaces are not watched one by one.
    fn blind(&self) -> Option<Duration>;

    /// How it tells kubelet's probes from clients.
    fn probes(&self) -> ProbeStatus {
        ProbeStatus::unsupported()
    }

    /// Probes come at these ports from now on, and at no others.
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not take them: their probes then count as clients.
    fn probe_at(&mut self, _ports: &[ProbePort]) -> Result<(), String> {
        Ok(())
    }

    /// A request in kubelet's name came over a connection to the agent's own port. Whether something was learnt of it.
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not say whose it is, or does not take what was learnt.
    fn kubelet_asked(&mut self, _asker: Asker) -> Result<bool, String> {
        Ok(false)
    }

    /// Keeps who sends the SYNs that count from now on, or no longer; what was kept before is forgotten. `false` if the sensor
    /// cannot.
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not take it.
    fn keep_sources(&mut self, _wanted: bool) -> Result<bool, String> {
        Ok(false)
    }

    /// These IPv6 addresses are sources of their own from now on, at most 16,384; of all others only the network is kept.
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not take them.
    fn keep_whole(&mut self, _addresses: &BTreeSet<Ipv6Addr>) -> Result<(), String> {
        Ok(())
    }

    /// Who has sent the SYNs that count since [`keep_sources`](Self::keep_sources).
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not say it.
    fn sources(&self) -> Result<Kept, String> {
        Ok(Kept::default())
    }

    /// Whether it can know which process sent a SYN.
    fn knows_senders(&self) -> bool {
        false
    }

    /// Whether a process of this node opened a connection to the agent's own port, as far as is known.
    ///
    /// # Errors
    ///
    /// In words, if the kernel does not say.
    fn is_of_this_node(&self, _asker: Asker) -> Result<bool, String> {
        Ok(false)
    }

    /// What has reached each counted port, without a look after the sensor: for who only shows it. `None` where it is to be had
    /// by [`read`](Self::read) alone.
    fn totals(&self) -> Option<BTreeMap<Port, PortAttempts>> {
        None
    }

    /// What the kernel's own account says of our programs' runs: nothing where there are none, or the kernel keeps no account
    /// (`kernel.bpf_stats_enabled`).
    fn runs(&self) -> Vec<ProgramRuns> {
        Vec::new()
    }

    /// Counts a port from now on.
    ///
    /// # Errors
    ///
    /// In words, if it cannot.
    fn watch(&mut self, port: Port) -> Result<(), String>;

    /// Looks after the sensor, then reads it. Every SYN from before the call is in what it shows.
    fn read(&mut self, around: Around<'_>) -> Counts;
}

/// How often a program of ours ran, and for how long in all, while the kernel kept account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Its name in the object.
    pub program: String,
    /// How often.
    pub runs: u64,
    /// For how long.
    pub time: Duration,
}

/// What a sensor is read by.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The namespace's interfaces; `None` if they could not be listed.
    pub interfaces: Option<&'a [Interface]>,
    /// They were listed after this.
    pub listed_at: Monotonic,
    /// Run the self-test too.
    pub test: bool,
    /// When the drain under way began.
    pub draining_since: Option<Monotonic>,
}

/// What a sensor shows at one time.
#[derive(Debug)]
pub struct Counts {
    /// Whether it is known to see everything.
    pub state: SensorState,
    /// SYNs on any interface and port, for the witness; `None` where there is none.
    pub attempts_anywhere: Option<u64>,
    /// What reached each counted port.
    pub attempts: BTreeMap<Port, PortAttempts>,
    /// What may have been for any port.
    pub unattributed: ByFamily<Tally>,
    /// What could not be observed.
    pub not_observed: Vec<NotObserved>,
    /// As [`Sensor::blind`].
    pub blind: Duration,
}

impl Counts {
    /// Nothing was counted.
    pub(super) fn none(strategy: Strategy, why: String, blind: Duration) -> Self {
        Self {
            state: SensorState::Unproven { strategy, why },
            attempts_anywhere: None,
            attempts: BTreeMap::new(),
            unattributed: ByFamily::default(),
            not_observed: Vec::new(),
            blind,
        }
    }
}

/// Why a sensor that is on no interface, or has no program of ours, does not count a UDP port.
pub(super) fn datagrams_unseen(port: Port) -> String {
    format!("port {port} is not counted: only the sensors tcx and clsact see datagrams that open QUIC connections")
}

/// Ports that could not be had, and why.
#[derive(Debug, Default)]
pub(super) struct Uncounted(BTreeMap<Port, String>);

impl Uncounted {
    /// Remembers what came of a port.
    pub(super) fn note(&mut self, port: Port, counted: &Result<(), String>) {
        match counted {
            Ok(()) => drop(self.0.remove(&port)),
            Err(why) => drop(self.0.insert(port, why.clone())),
        }
    }

    /// As what is not observed.
    pub(super) fn not_observed(&self) -> impl Iterator<Item = NotObserved> {
        self.0.iter().map(|(port, why)| NotObserved {
            what: "listener".to_owned(),
            name: Some(port.to_string()),
            family: None,
            why: why.clone(),
        })
    }
}
