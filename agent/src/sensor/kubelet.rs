//! Kubelet's probes: which control groups are kubelet's, and which ports it probes.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use aya::maps::MapError;
use lastsyn_common::{
    counters::{MOST_KUBELET_GROUPS, NOBODY, OWN_SLOT, Prober, Sender, names_one},
    packet::{Ipv4, Ipv6},
};
use serde::{Deserialize, Serialize};

use super::{
    maps::set_slot,
    object::Loaded,
    pace::{Paced, Told},
    self_test,
};
use crate::core::{
    clock::Monotonic,
    listener::{Family, Port},
    probe::ProbePort,
    verdict::NotObserved,
};

/// How kubelet's probes are told from clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// By what.
    pub method: ProbeMethod,
    /// Why by nothing, or by nothing better.
    #[serde(default)]
    pub why: Option<String>,
    /// The probed ports.
    #[serde(default)]
    pub ports: Vec<Port>,
}

/// By what kubelet's probes are told from clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProbeMethod {
    /// By nothing: no probed port is known, or the operator wants it so. They are in `new`.
    #[default]
    Off,
    /// By nothing: the sensor cannot.
    Unsupported,
    /// By nothing yet: kubelet has not asked the agent anything from a control group that can be told from others.
    NotLearnt,
    /// By where they come from, and by their period and phase: what a client could do as well, so that a drain can end
    /// `unverified` at best.
    Pace,
    /// By the control group of the process that sent the SYN.
    ControlGroup,
}

/// A connection to the agent's own port: both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The other end.
    pub remote: SocketAddr,
    /// The agent's.
    pub local: SocketAddr,
}

/// Why a request in kubelet's name teaches nothing. Each is shown to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Doubt {
    /// Nothing came yet.
    #[error("kubelet has not asked the agent yet: the agent's container needs an httpGet probe at the agent's port")]
    NotAsked,
    /// The kernel knows of no sender on this node: another pod or host, or a network that takes the socket off a packet.
    #[error("a request in kubelet's name came from no process of this node that the kernel knows")]
    Elsewhere,
    /// Kubelet is in no group of its own.
    #[error("a request in kubelet's name came from the root control group, where every process may be")]
    Root,
    /// The agent's own group tells nothing of where pods are.
    #[error("the agent is in the root control group, so that the groups of pods are not known")]
    OwnUnknown,
    /// A process in the group in which all pods are: one with `hostNetwork`, or a kubelet whose node is a container.
    #[error("a request in kubelet's name came from the control group in which pods are")]
    AmongPods,
}

/// What is known of kubelet.
#[derive(Debug)]
pub(super) struct Kubelet {
    /// The program knows who sends a SYN, where that can be known.
    senders: bool,
    probes: Vec<ProbePort>,
    ports: BTreeSet<Port>,
    paced: Paced,
    /// The ports of which the program now writes down what may be a probe.
    marked: BTreeSet<Port>,
    /// The newest last.
    groups: VecDeque<u64>,
    /// The group right below the root in which the agent is, and so all pods.
    pods: Option<u64>,
    doubt: Doubt,
}

impl ProbeStatus {
    /// The sensor cannot tell them.
    pub(super) fn unsupported() -> Self {
        let why = Some("the sensor does not know who sends a SYN".to_owned());
        Self { method: ProbeMethod::Unsupported, why, ports: Vec::new() }
    }

    /// In words, for people.
    pub fn words(&self) -> String {
        let by = match self.method {
            ProbeMethod::Off | ProbeMethod::Unsupported | ProbeMethod::NotLearnt => "count as clients",
            ProbeMethod::Pace => "told by their source, period and phase",
            ProbeMethod::ControlGroup => "told by kubelet's control group",
        };
        self.why.as_ref().map_or_else(|| by.to_owned(), |why| format!("{by}: {why}"))
    }
}

impl Kubelet {
    /// Nothing yet. From now on the program remembers who asks at the agent's own port.
    ///
    /// `senders` says whether the program that runs knows who sends a SYN at all.
    pub(super) fn begin(loaded: &mut Loaded, own_port: u16, senders: bool) -> Result<Self, MapError> {
        let mut pods = None;
        if senders {
            if own_port != 0 {
                set_slot(loaded, own_port, OWN_SLOT)?;
            }
            // Before the program is on any interface, so that nobody else can have sent what is found. Where the test
            // fails, the sensor says so by itself.
            if self_test::run(loaded).is_ok() {
                pods = sender(loaded, self_test::CONNECTION)?.filter(|own| names_one(own.group)).map(|own| own.top);
            }
        }
        Ok(Self {
            senders,
            probes: Vec::new(),
            ports: BTreeSet::new(),
            paced: Paced::default(),
            marked: BTreeSet::new(),
            groups: VecDeque::new(),
            pods,
            doubt: Doubt::NotAsked,
        })
    }

    pub(super) fn status(&self) -> ProbeStatus {
        let known = !self.groups.is_empty();
        let method = match (known, self.paced.any_known()) {
            (true, _) => ProbeMethod::ControlGroup,
            (false, true) => ProbeMethod::Pace,
            (false, false) => ProbeMethod::NotLearnt,
        };
        let why = (!known).then(|| self.doubt.to_string());
        ProbeStatus { method, why, ports: self.ports.iter().copied().collect() }
    }

    /// Probes come at these ports from now on, and at no others.
    pub(super) fn probe_at(&mut self, loaded: &mut Loaded, probes: &[ProbePort]) -> Result<(), MapError> {
        let ports: BTreeSet<_> = probes.iter().map(|probe| probe.port).collect();
        for &group in &self.groups {
            for &port in self.ports.difference(&ports) {
                absent_is_fine(loaded.probers.remove(&prober(group, port)))?;
            }
            for &port in ports.difference(&self.ports) {
                loaded.probers.insert(prober(group, port), 0, 0)?;
            }
        }
        self.ports = ports;
        probes.clone_into(&mut self.probes);
        self.mark(loaded)
    }

    /// As long as no group is known the program writes down which SYNs may be probes, and their pace tells.
    fn mark(&mut self, loaded: &mut Loaded) -> Result<(), MapError> {
        let mut wanted = BTreeMap::new();
        if self.senders && self.groups.is_empty() {
            for &port in &self.ports {
                if let Some(number) = self.paced.number(port, &self.probes) {
                    wanted.insert(port, number);
                }
            }
        }
        for &port in self.marked.iter().filter(|port| !wanted.contains_key(port)) {
            absent_is_fine(loaded.probers.remove(&prober(NOBODY, port)))?;
        }
        for (&port, &number) in &wanted {
            loaded.probers.insert(prober(NOBODY, port), number, 0)?;
        }
        self.marked = wanted.into_keys().collect();
        Ok(())
    }

    /// Reads what the program has written down.
    pub(super) fn read(
        &mut self,
        loaded: &Loaded,
        draining_since: Option<Monotonic>,
        now: Monotonic,
    ) -> Result<(), MapError> {
        self.paced.read(loaded, draining_since, now)
    }

    /// What the pace has told of a port.
    pub(super) fn told(&self, port: Port, family: Family) -> Told {
        self.paced.told(port, family)
    }

    /// That SYNs of this drain were taken for probes by their pace alone.
    pub(super) fn not_observed(&self) -> impl Iterator<Item = NotObserved> {
        self.paced.not_observed()
    }

    /// A request in kubelet's name came over this connection. Whether something new was learnt.
    pub(super) fn asked(&mut self, loaded: &mut Loaded, asker: Asker) -> Result<bool, MapError> {
        let Some(connection) = Connection::of(asker) else { return Ok(false) };
        let group = match judge(sender(loaded, connection)?, self.pods) {
            Ok(group) => group,
            Err(doubt) => {
                self.doubt = doubt;
                return Ok(false);
            }
        };
        if self.groups.contains(&group) {
            return Ok(false);
        }
        // Before the new ones, so that there is room for these.
        while self.groups.len() >= MOST_KUBELET_GROUPS as usize {
            let Some(oldest) = self.groups.pop_front() else { break };
            for &port in &self.ports {
                // One that is not there need not go.
                absent_is_fine(loaded.probers.remove(&prober(oldest, port)))?;
            }
        }
        for &port in &self.ports {
            loaded.probers.insert(prober(group, port), 0, 0)?;
        }
        self.groups.push_back(group);
        self.mark(loaded)?;
        Ok(true)
    }
}

/// Whether a process of this node opened this connection to the agent's own port, in whatever control group it is.
pub(super) fn is_of_this_node(loaded: &Loaded, asker: Asker) -> Result<bool, MapError> {
    let Some(connection) = Connection::of(asker) else { return Ok(false) };
    Ok(sender(loaded, connection)?.is_some_and(|sender| sender.group != 0))
}

/// Whether the sender of a request in kubelet's name can be kubelet: a process of this node, in a control group that can be
/// told from others, and not in the one that holds all pods. Everything in doubt is not.
fn judge(sender: Option<Sender>, pods: Option<u64>) -> Result<u64, Doubt> {
    let sender = sender.filter(|sender| sender.group != 0).ok_or(Doubt::Elsewhere)?;
    if !names_one(sender.group) {
        return Err(Doubt::Root);
    }
    match pods {
        None => Err(Doubt::OwnUnknown),
        Some(pods) if pods == sender.top => Err(Doubt::AmongPods),
        Some(_) => Ok(sender.group),
    }
}

fn prober(group: u64, port: Port) -> Prober {
    Prober { group, port: port.number().into() }
}

/// A connection as the program writes it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    V4(Ipv4),
    V6(Ipv6),
}

impl Connection {
    /// `None` for one of two families, which there is not.
    fn of(asker: Asker) -> Option<Self> {
        let Asker { remote, local } = asker;
        let ports = two_ports(remote.port(), local.port());
        match (remote.ip().to_canonical(), local.ip().to_canonical()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (source, destination) = (u32::from(source).to_be(), u32::from(destination).to_be());
                Some(Self::V4(Ipv4 { source, destination, ports }))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Some(Self::V6(Ipv6 { source: words(source), destination: words(destination), ports }))
            }
            _ => None,
        }
    }
}

/// Who opened a connection to the agent; `None` if no process of this node did, or others have asked so often since that
/// it is forgotten.
fn sender(loaded: &Loaded, connection: Connection) -> Result<Option<Sender>, MapError> {
    let found = match connection {
        Connection::V4(connection) => loaded.askers_v4.get(&connection, 0),
        Connection::V6(connection) => loaded.askers_v6.get(&connection, 0),
    };
    match found {
        Ok(sender) => Ok(Some(sender)),
        Err(MapError::KeyNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Both ports as they lie in a segment.
fn two_ports(source: u16, destination: u16) -> u32 {
    let ([a, b], [c, d]) = (source.to_be_bytes(), destination.to_be_bytes());
    u32::from_ne_bytes([a, b, c, d])
}

/// An IPv6 address as it lies in a packet.
fn words(address: Ipv6Addr) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(address.octets().as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    words
}

fn absent_is_fine(removed: Result<(), MapError>) -> Result<(), MapError> {
    match removed {
        Err(MapError::KeyNotFound) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: u64 = 40;

    #[test]
    fn kubelet_is_a_process_of_this_node_outside_the_pods_group() {
        let sender = |group, top| Some(Sender { group, top });
        assert_eq!(judge(sender(70, 60), Some(PODS)), Ok(70));
        assert_eq!(judge(sender(60, 60), Some(PODS)), Ok(60), "a group right below the root");
        assert_eq!(judge(None, Some(PODS)), Err(Doubt::Elsewhere));
        assert_eq!(judge(sender(0, 0), Some(PODS)), Err(Doubt::Elsewhere));
        assert_eq!(judge(sender(1, 0), Some(PODS)), Err(Doubt::Root));
        assert_eq!(judge(sender(70, PODS), Some(PODS)), Err(Doubt::AmongPods));
        assert_eq!(judge(sender(70, 60), None), Err(Doubt::OwnUnknown));
    }

    #[test]
    fn a_connection_is_written_as_it_lies_in_a_packet() {
        let of = |remote: &str, local: &str| {
            Connection::of(Asker { remote: remote.parse().unwrap(), local: local.parse().unwrap() })
        };
        let v4 = Ipv4 {
            source: u32::from_ne_bytes([10, 0, 0, 1]),
            destination: u32::from_ne_bytes([10, 0, 0, 2]),
            ports: u32::from_ne_bytes([0x12, 0x34, 0x00, 0x50]),
        };
        assert_eq!(of("10.0.0.1:4660", "10.0.0.2:80"), Some(Connection::V4(v4)));
        assert_eq!(of("[::ffff:10.0.0.1]:4660", "[::ffff:10.0.0.2]:80"), Some(Connection::V4(v4)));
        let Some(Connection::V6(v6)) = of("[fd00::1]:4660", "[fd00::2]:80") else { panic!("no IPv6") };
        assert_eq!(v6.source.map(u32::to_ne_bytes).concat(), "fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(v6.ports, v4.ports);
        assert_eq!(of("10.0.0.1:1", "[fd00::2]:80"), None);
    }
}
