//! One reading of everything the kernel shows, in the order that the core relies on.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use crate::{
    core::{
        clock::Monotonic,
        event::{ByFamily, Depth, Evidence},
        listener::Port,
        probe::ProbePort,
        verdict::{NotObserved, Strategy},
        view::Span,
    },
    drive::clock,
    sensor::{
        Around, Asker, Interface, InterfaceError, Interfaces, ProbeStatus, Selected, Sensor, families, namespace,
    },
    sockets,
};

/// How long the kernel may take to list interfaces and addresses. It answers within microseconds, but for the lock that every
/// change of an interface or a namespace on the node takes (`rtnl_lock`): a node that starts or ends many pods holds it for long.
const PATIENCE: Duration = Duration::from_secs(2);

/// What it has at least, near a drain's bound.
const LEAST_PATIENCE: Duration = Duration::from_millis(50);

/// Reads the evidence.
pub struct Reader {
    selected: Selected,
    interfaces: Interfaces,
    /// The newest answer, which stands while the kernel gives none.
    addresses: Vec<IpAddr>,
    /// Every port that was to be counted.
    watched: BTreeSet<Port>,
    /// Why no probed port is known, where none is.
    no_probes: Option<&'static str>,
}

impl Reader {
    /// A reader over a sensor that is in place.
    pub fn new(selected: Selected, interfaces: Interfaces) -> Self {
        Self { selected, interfaces, addresses: Vec::new(), watched: BTreeSet::new(), no_probes: None }
    }

    /// The sensor.
    pub fn sensor(&self) -> &dyn Sensor {
        self.selected.sensor.as_ref()
    }

    /// The better sensors that could not be had, best first, each with the reason.
    pub fn passed_over(&self) -> &[(Strategy, String)] {
        &self.selected.passed_over
    }

    /// The pod's addresses, as of the last reading.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// A request in kubelet's name came over a connection to the agent's own port.
    pub(super) fn kubelet_asked(&mut self, asker: Asker) -> Result<bool, String> {
        self.selected.sensor.kubelet_asked(asker)
    }

    /// Whether the sensor can know which process sent a SYN.
    pub(super) fn knows_senders(&self) -> bool {
        self.selected.sensor.knows_senders()
    }

    /// Whether a process of this node opened a connection to the agent's own port, as far as is known.
    pub(super) fn is_of_this_node(&self, asker: Asker) -> Result<bool, String> {
        self.selected.sensor.is_of_this_node(asker)
    }

    /// How kubelet's probes are told from clients.
    pub(super) fn probes(&self) -> ProbeStatus {
        match self.no_probes {
            Some(why) => ProbeStatus { why: Some(why.to_owned()), ..ProbeStatus::default() },
            None => self.selected.sensor.probes(),
        }
    }

    /// Kubelet probes at these ports from now on, and at no others. Where there are none, `none` says why.
    pub(super) fn probe_at(&mut self, ports: &[ProbePort], none: &'static str) -> Result<(), String> {
        self.no_probes = ports.is_empty().then_some(none);
        self.selected.sensor.probe_at(ports)
    }

    /// The sensor, to tell it what sources to keep.
    pub(super) fn sensor_mut(&mut self) -> &mut dyn Sensor {
        self.selected.sensor.as_mut()
    }

    /// Counts a port from now on.
    pub(super) fn watch(&mut self, port: Port) -> Result<(), String> {
        self.watched.insert(port);
        self.selected.sensor.watch(port)
    }

    /// Reads, in a drain or at rest. Whatever fails is part of the evidence: not observed, with the reason. It does not wait for
    /// the kernel past a drain's bound (S1).
    pub(super) async fn read(&mut self, depth: Depth, drain: Option<Span>) -> Evidence {
        let mut not_observed = Vec::new();
        let listed_at = clock::now();
        let patience = patience(listed_at, drain.map(|drain| drain.bound));
        let interfaces = self.look_around(patience, &mut not_observed).await;
        let taken_at = clock::now();
        // The counters before the sensor: every handshake in them then has its SYN in the sensor's count.
        let namespace = namespace::counters().map_err(|error| error.to_string());
        let test = depth > Depth::Listeners;
        let around = Around {
            interfaces: interfaces.as_deref(),
            listed_at,
            test,
            draining_since: drain.map(|drain| drain.started),
        };
        let counts = self.selected.sensor.read(around);
        let sockets = sockets::read(depth, &self.watched);
        let passive_opens_after = namespace::passive_opens().ok();
        not_observed.extend(counts.not_observed);
        Evidence {
            taken_at,
            namespace,
            sensor: counts.state,
            blind: counts.blind,
            attempts_anywhere: counts.attempts_anywhere,
            attempts: counts.attempts,
            unattributed: counts.unattributed,
            families: self.families(),
            sockets,
            passive_opens_after,
            not_observed,
        }
    }

    async fn look_around(&mut self, patience: Duration, not_observed: &mut Vec<NotObserved>) -> Option<Vec<Interface>> {
        let mut missed = |what: &str, error: &dyn std::fmt::Display| {
            let what = what.to_owned();
            not_observed.push(NotObserved { what, name: None, family: None, why: error.to_string() });
        };
        let (addresses, interfaces) =
            tokio::join!(answered(patience, self.interfaces.addresses()), answered(patience, self.interfaces.list()));
        match addresses {
            Ok(addresses) => self.addresses = addresses,
            Err(error) => missed("address", &error),
        }
        interfaces.map_err(|error| missed("interface", &error)).ok()
    }

    fn families(&self) -> ByFamily<bool> {
        families(&self.addresses)
    }
}

fn patience(now: Monotonic, bound: Option<Monotonic>) -> Duration {
    bound.map_or(PATIENCE, |bound| bound.since(now).clamp(LEAST_PATIENCE, PATIENCE))
}

async fn answered<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, InterfaceError>>,
) -> Result<T, InterfaceError> {
    tokio::time::timeout(patience, asked).await.unwrap_or(Err(InterfaceError::Silent(patience)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_the_kernel_is_not_waited_for_past_the_bound() {
        let now = clock::now();
        assert_eq!(patience(now, None), PATIENCE);
        assert_eq!(patience(now, Some(now + PATIENCE * 9)), PATIENCE);
        assert_eq!(patience(now, Some(now + PATIENCE / 4)), PATIENCE / 4);
        assert_eq!(patience(now, Some(now)), LEAST_PATIENCE);
    }
}
