//! A cluster of any size, as the core is told of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use lastsyn::core::{
    clock::Monotonic,
    cluster::{
        ClusterEvent, ConnectionId, Endpoint, FamilyHealth, HealthOutcome, HealthReport, HealthStatus, Node, NodeName,
        NodeTime, ObservationId, PortName, ReadId, ReadOutcome, ResourceVersion, Service, ServiceName, ServiceProxy,
        Slice, SliceName, SlicePort, Snapshot, TrafficPolicy, Transport,
    },
    confirm::{Bounds, OperatingSystem},
    drain::Core,
    event::{
        Action, ByFamily, CallerId, Connections, Depth, Event, Evidence, NamespaceCounters, PortAttempts, SensorState,
        Sockets,
    },
    listener::{Family, Port},
    settings::{RoutingSettings, Settings, Watch},
    verdict::Strategy,
};

pub(crate) const START: Monotonic = Monotonic::from_nanos(1_000_000_000_000);

/// The endpoints of each slice, the pod's own included.
const ENDPOINTS: u8 = 100;

pub(crate) struct Cluster {
    nodes: usize,
    services: usize,
    versions: u64,
    slices: BTreeMap<SliceName, Slice>,
    observation: Option<ObservationId>,
}

impl Cluster {
    pub(crate) fn new(nodes: usize, services: usize) -> Self {
        let mut cluster = Self { nodes, services, versions: 0, slices: BTreeMap::new(), observation: None };
        for service in 0..services {
            for family in Family::ALL {
                let slice = cluster.slice(service, family, true, false);
                cluster.slices.insert(slice.name.clone(), slice);
            }
        }
        cluster
    }

    /// A core at rest, that has read the kernel's evidence.
    pub(crate) fn core() -> Core {
        let pod = BTreeSet::from(Family::ALL.map(|family| address(family, 0)));
        let bounds = Bounds {
            watch_lag: Duration::from_secs(2),
            sync_time: Duration::from_secs(2),
            min_sync: Duration::from_secs(1),
        };
        let routing = RoutingSettings {
            pod,
            node: node(0),
            bounds,
            load_balancer_window: Duration::ZERO,
            poll_timeout: Duration::from_secs(2),
            fence: false,
            accept: BTreeSet::new(),
            max_nodes: 10_000,
        };
        let settings = Settings {
            watch: Watch::Auto { exclude: Vec::new() },
            quiet_period: Duration::from_secs(2),
            retry_wait: Duration::from_secs(8),
            min_wait: Duration::ZERO,
            max_wait: Duration::from_mins(10),
            handshake_grace: Duration::from_secs(3),
            exit_at_connections: None,
            routing: Some(routing),
            no_routing: lastsyn::core::settings::NoRouting::Off,
            restart_guard: None,
            fail_after: None,
            stop_reserve: Duration::from_secs(10),
            linger: Duration::ZERO,
        };
        let before = START - Duration::from_mins(1);
        let mut core = Core::new(settings, before);
        core.handle(Event::Clock, before);
        settle(&mut core, before);
        core
    }

    pub(crate) fn call_hook(&mut self, core: &mut Core) {
        core.handle(Event::HookCalled { caller: CallerId(1), wall_time: String::new() }, START);
        self.observation = settle(core, START).0.or(self.observation);
    }

    /// The first lists complete.
    pub(crate) fn list(&self, core: &mut Core) {
        let services = (0..self.services).map(service).collect();
        let nodes = (0..self.nodes).map(|number| Node { name: node(number), system: OperatingSystem::Linux }).collect();
        let slices = self.slices.values().cloned().collect();
        for event in [
            ClusterEvent::ServicesListed(services),
            ClusterEvent::NodesListed(nodes),
            ClusterEvent::SlicesListed(slices),
        ] {
            core.handle(self.say(event), START);
            settle(core, START);
        }
    }

    /// Every slice says that the pod is terminating.
    pub(crate) fn withdraw(&mut self, core: &mut Core) {
        for service in 0..self.services {
            for family in Family::ALL {
                let slice = self.slice(service, family, false, true);
                self.slices.insert(slice.name.clone(), slice.clone());
                core.handle(self.say(ClusterEvent::SliceWritten(slice)), START);
                settle(core, START);
            }
        }
    }

    /// Every node is asked once a second, and syncs in between. Returns how many events it took.
    pub(crate) fn poll_every_node_until_the_end(&self, core: &mut Core) -> usize {
        let mut events = 0;
        for second in 1..20 {
            let now = START + Duration::from_secs(second);
            for number in 0..self.nodes {
                let health = Self::health(number, i128::from(second), now);
                core.handle(self.say(health), now);
                events += 1;
                if let (_, Some(read)) = settle(core, now) {
                    core.handle(self.say(ClusterEvent::ConsistentRead(read, self.snapshot())), now);
                    settle(core, now);
                }
            }
            core.handle(Event::Clock, now);
            settle(core, now);
            if core.verdict().is_some() {
                break;
            }
        }
        events
    }

    pub(crate) fn say(&self, event: ClusterEvent) -> Event {
        Event::Cluster(self.observation.unwrap_or(ObservationId(0)), Arc::new(event))
    }

    pub(crate) fn health(number: usize, stamp: i128, at: Monotonic) -> ClusterEvent {
        let health = Some(FamilyHealth { last_updated: NodeTime(stamp), healthy: true });
        ClusterEvent::Health(HealthReport {
            node: node(number),
            connection: ConnectionId(number as u64 + 1),
            sent_at: at,
            received_at: at,
            outcome: HealthOutcome::Status(HealthStatus { v4: health, v6: health }),
        })
    }

    /// A slice of a Service that has nothing to do with the pod.
    pub(crate) fn unrelated_slice(&mut self) -> ClusterEvent {
        let mut slice = self.slice(0, Family::V4, true, false);
        slice.name = SliceName("other-abc".to_owned());
        slice.service = ServiceName("other".to_owned());
        slice.endpoints.remove(0);
        ClusterEvent::SliceWritten(slice)
    }

    /// A slice that lists the pod ready again, or not any more: every confirmation is void.
    pub(crate) fn slice_that_routes(&mut self, ready: bool) -> ClusterEvent {
        ClusterEvent::SliceWritten(self.slice(0, Family::V4, ready, !ready))
    }

    fn slice(&mut self, number: usize, family: Family, ready: bool, terminating: bool) -> Slice {
        self.versions += 1;
        let endpoints = (0..ENDPOINTS).map(|who| Endpoint {
            address: address(family, who),
            addresses: BTreeSet::from([address(family, who)]),
            ready: Some(ready || who > 0),
            serving: Some(true),
            terminating: Some(terminating && who == 0),
            node: Some(node(usize::from(who) % self.nodes)),
        });
        Slice {
            name: SliceName(format!("service-{number}-{}", family.name())),
            version: ResourceVersion(self.versions.to_string()),
            service: service(number).name,
            family,
            proxy: ServiceProxy::KubeProxy,
            ports: vec![SlicePort { name: PortName("http".to_owned()), transport: Transport::Tcp, number: 8080 }],
            endpoints: endpoints.collect(),
        }
    }

    fn snapshot(&self) -> ReadOutcome {
        let slices = self.slices.iter().map(|(name, slice)| (name.clone(), slice.version.clone())).collect();
        let services = (0..self.services).map(service).map(|service| (service.name, service.version)).collect();
        ReadOutcome::Shows(Snapshot { slices, services, nodes: None })
    }
}

/// Carries out what the core wants done, and returns what only the cluster can answer.
fn settle(core: &mut Core, now: Monotonic) -> (Option<ObservationId>, Option<ReadId>) {
    let (mut observation, mut read) = (None, None);
    while let Some(action) = core.poll() {
        match action {
            Action::Read(depth) => core.handle(Event::Evidence(Box::new(evidence(depth, now))), now),
            Action::ObserveCluster(id) => observation = Some(id),
            Action::ReadConsistently(id) => read = Some(id),
            _ => {}
        }
    }
    (observation, read)
}

/// Nothing comes any more.
fn evidence(depth: Depth, now: Monotonic) -> Evidence {
    let ports: Vec<_> = [80, 443, 8080].into_iter().filter_map(|number| Port::try_from(number).ok()).collect();
    let connections = Connections { handshakes: BTreeMap::new(), established: Some(BTreeMap::new()) };
    let watched_since = START - Duration::from_mins(1);
    Evidence {
        taken_at: now,
        namespace: Ok(NamespaceCounters::default()),
        sensor: SensorState::Proven { strategy: Strategy::Tcx, since: watched_since },
        attempts_anywhere: Some(0),
        attempts: ports
            .iter()
            .map(|port| (*port, PortAttempts { watched_since, families: ByFamily::default() }))
            .collect(),
        unattributed: ByFamily::default(),
        families: ByFamily { v4: true, v6: true },
        sockets: Ok(Sockets {
            listeners: ports.iter().map(|port| (*port, 0)).collect(),
            connections: (depth > Depth::Listeners).then_some(connections),
        }),
        passive_opens_after: Some(0),
        blind: Duration::ZERO,
        not_observed: Vec::new(),
    }
}

fn service(number: usize) -> Service {
    Service {
        name: ServiceName(format!("service-{number}")),
        version: ResourceVersion("1".to_owned()),
        external: TrafficPolicy::Cluster,
        internal: TrafficPolicy::Cluster,
        proxy: ServiceProxy::KubeProxy,
        ports: "http 80/TCP".to_owned(),
        health_check_node_port: None,
    }
}

fn node(number: usize) -> NodeName {
    NodeName(format!("node-{number}"))
}

fn address(family: Family, who: u8) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([10, 0, 0, who]),
        Family::V6 => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(who)]),
    }
}
