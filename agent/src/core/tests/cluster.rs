//! The cluster that a world's core watches: the pod's slices, its Service, the nodes' health servers and the fence.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    truth::ms,
    world::{World, at, settings},
};
use crate::core::{
    cluster::{
        ClusterEvent, ConnectionId, Endpoint, FamilyHealth, FenceRequest, HealthOutcome, HealthReport, HealthStatus,
        Node, NodeName, NodeTime, ObservationId, PortName, ReadId, ReadOutcome, ResourceVersion, Service, ServiceName,
        ServiceProxy, Slice, SliceName, SlicePort, Snapshot, TrafficPolicy, Transport,
    },
    confirm::{Bounds, FenceProgress, OperatingSystem},
    event::{Action, Event},
    listener::Family,
    phase::Phase,
    settings::{RoutingSettings, Settings},
    termination::PodRead,
};

/// `ready`, `serving`, `terminating`.
pub(super) type Conditions = [bool; 3];

pub(super) const READY: Conditions = [true, true, false];
/// Terminating, and passing its probes: kube-proxy's fallback.
pub(super) const LEAVING: Conditions = [false, true, true];

/// What the world's API server holds, and how it answers.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) slices: BTreeMap<SliceName, Slice>,
    pub(super) services: BTreeMap<ServiceName, Service>,
    pub(super) nodes: Vec<Node>,
    versions: u64,
    /// What a consistent read is answered with; `None`: what there is.
    pub(super) reads: Option<ReadOutcome>,
    /// Reads are not answered by themselves.
    pub(super) silent: bool,
    /// What a read of the pod is answered with; `None`: not at all.
    pub(super) pod: Option<PodRead>,
    pub(super) observed: Option<ObservationId>,
    stamps: BTreeMap<String, i128>,
    /// What the server in the pod was told, and when (ms after the beginning).
    pub(super) told: Vec<(u64, Phase)>,
}

/// The pod is 10.0.0.1 on the node `here`; Service `web` lists it with a peer on `there`.
pub(super) fn routing() -> RoutingSettings {
    RoutingSettings {
        pod: BTreeSet::from(["10.0.0.1".parse().unwrap()]),
        node: NodeName("here".to_owned()),
        bounds: Bounds { watch_lag: ms(2000), sync_time: ms(2000), min_sync: ms(1000) },
        load_balancer_window: ms(0),
        poll_timeout: ms(2000),
        fence: false,
        accept: BTreeSet::new(),
        max_nodes: 500,
    }
}

pub(super) fn with_routing() -> Settings {
    Settings { routing: Some(routing()), max_wait: ms(60_000), ..settings() }
}

impl Cluster {
    pub(super) fn new() -> Self {
        let mut cluster = Self {
            slices: BTreeMap::new(),
            services: BTreeMap::new(),
            nodes: ["here", "there"].map(node).to_vec(),
            versions: 0,
            reads: None,
            silent: false,
            pod: None,
            observed: None,
            stamps: BTreeMap::new(),
            told: Vec::new(),
        };
        let service = cluster.service(TrafficPolicy::Cluster);
        cluster.services.insert(service.name.clone(), service);
        let slice = cluster.slice(&[(1, READY), (2, READY)]);
        cluster.slices.insert(slice.name.clone(), slice);
        cluster
    }

    pub(super) fn version(&mut self) -> ResourceVersion {
        self.versions += 1;
        ResourceVersion(self.versions.to_string())
    }

    /// The next version of the Service `web`.
    pub(super) fn service(&mut self, external: TrafficPolicy) -> Service {
        Service {
            name: ServiceName("web".to_owned()),
            version: self.version(),
            external,
            internal: TrafficPolicy::Cluster,
            proxy: ServiceProxy::KubeProxy,
            ports: "http 80/TCP".to_owned(),
            health_check_node_port: None,
        }
    }

    /// The next version of its slice, with these endpoints: 10.0.0.N, the pod on `here`, the others on `there`.
    pub(super) fn slice(&mut self, endpoints: &[(u8, Conditions)]) -> Slice {
        Slice {
            name: SliceName("web-abc".to_owned()),
            version: self.version(),
            service: ServiceName("web".to_owned()),
            family: Family::V4,
            proxy: ServiceProxy::KubeProxy,
            ports: vec![SlicePort { name: PortName("http".to_owned()), transport: Transport::Tcp, number: 8080 }],
            endpoints: endpoints.iter().map(|(who, conditions)| endpoint(*who, *conditions)).collect(),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let slices = self.slices.iter().map(|(name, slice)| (name.clone(), slice.version.clone()));
        let services = self.services.iter().map(|(name, service)| (name.clone(), service.version.clone()));
        Snapshot { slices: slices.collect(), services: services.collect(), nodes: Some(self.nodes.clone()) }
    }
}

impl World {
    /// Carries out what concerns the cluster and the server in the pod.
    pub(super) fn ask(&mut self, action: Action) {
        match action {
            Action::ObserveCluster(observation) => {
                self.cluster.observed = Some(observation);
                if !self.cluster.silent {
                    self.list();
                }
            }
            Action::ForgetCluster => self.cluster.observed = None,
            Action::ReadConsistently(id) if !self.cluster.silent => {
                if let Some(answer) = self.answer_to(id) {
                    self.take(answer);
                }
            }
            Action::ReadPod(id) => {
                if let Some(outcome) = self.cluster.pod.clone() {
                    self.take(Event::PodRead(id, outcome));
                }
            }
            Action::Tell(phase) => self.cluster.told.push((self.now_ms(), phase)),
            _ => {}
        }
        self.asked.push((self.now_ms(), action));
    }

    fn take(&mut self, event: Event) {
        self.core.handle(event, self.now);
    }

    /// The watch says something.
    pub(super) fn say(&mut self, event: ClusterEvent) {
        if let Some(observation) = self.cluster.observed {
            self.handle(Event::Cluster(observation, Arc::new(event)));
        }
    }

    /// The first lists complete.
    pub(super) fn list(&mut self) {
        let Some(observation) = self.cluster.observed else { return };
        let Cluster { slices, services, nodes, .. } = self.cluster.clone();
        for event in [
            ClusterEvent::ServicesListed(services.into_values().collect()),
            ClusterEvent::NodesListed(nodes),
            ClusterEvent::SlicesListed(slices.into_values().collect()),
        ] {
            self.take(Event::Cluster(observation, Arc::new(event)));
        }
    }

    /// The API server answers a read at last.
    pub(super) fn answer_read(&mut self, id: ReadId) {
        if let Some(answer) = self.answer_to(id) {
            self.handle(answer);
        }
    }

    fn answer_to(&self, id: ReadId) -> Option<Event> {
        let outcome = self.cluster.reads.clone().unwrap_or_else(|| ReadOutcome::Shows(self.cluster.snapshot()));
        let observation = self.cluster.observed?;
        Some(Event::Cluster(observation, Arc::new(ClusterEvent::ConsistentRead(id, outcome))))
    }

    /// The API server has a new version of the slice, which the watch has not delivered.
    pub(super) fn write_slice(&mut self, endpoints: &[(u8, Conditions)]) -> Slice {
        let slice = self.cluster.slice(endpoints);
        self.cluster.slices.insert(slice.name.clone(), slice.clone());
        slice
    }

    /// The slice changes, and the watch says so.
    pub(super) fn slice(&mut self, endpoints: &[(u8, Conditions)]) {
        let slice = self.write_slice(endpoints);
        self.say(ClusterEvent::SliceWritten(slice));
    }

    /// A node's health server answers with the stamp of its last sync: a new one after a `sync`.
    pub(super) fn health(&mut self, name: &str, sync: bool) {
        let stamp = self.cluster.stamps.entry(name.to_owned()).or_default();
        *stamp += i128::from(sync);
        let health = FamilyHealth { last_updated: NodeTime(*stamp), healthy: true };
        self.report(name, HealthOutcome::Status(HealthStatus { v4: Some(health), v6: None }));
    }

    pub(super) fn report(&mut self, name: &str, outcome: HealthOutcome) {
        self.say(ClusterEvent::Health(HealthReport {
            node: NodeName(name.to_owned()),
            connection: ConnectionId(1),
            sent_at: self.now,
            received_at: self.now,
            outcome,
        }));
    }

    /// Both nodes show the markers of the last request to the fence.
    pub(super) fn fence_shows(&mut self) {
        let request = self.last_fence_request();
        for name in ["here", "there"] {
            self.say(ClusterEvent::Fence(FenceProgress {
                request,
                node: NodeName(name.to_owned()),
                family: Family::V4,
                stood_at: self.now,
                received_at: self.now,
            }));
        }
    }

    pub(super) fn last_fence_request(&self) -> FenceRequest {
        let request = self.asked.iter().rev().find_map(|(_, action)| match action {
            Action::AskFence(request) => Some(*request),
            _ => None,
        });
        request.expect("the fence was asked")
    }

    pub(super) fn last_read(&self) -> ReadId {
        let id = self.asked.iter().rev().find_map(|(_, action)| match action {
            Action::ReadConsistently(id) => Some(*id),
            _ => None,
        });
        id.expect("a consistent read was asked for")
    }

    /// When consistent reads were asked for.
    pub(super) fn reads(&self) -> Vec<u64> {
        let reads = self.asked.iter().filter(|(_, action)| matches!(action, Action::ReadConsistently(_)));
        reads.map(|(at, _)| *at).collect()
    }

    /// From `from` until `until` both nodes sync twice a second, and their health servers are asked.
    pub(super) fn syncs(&mut self, until: u64) {
        while self.now + ms(500) <= at(until) {
            let next = self.now + ms(500);
            self.run(next);
            for name in ["here", "there"] {
                self.health(name, true);
            }
        }
    }
}

pub(super) fn node(name: &str) -> Node {
    Node { name: NodeName(name.to_owned()), system: OperatingSystem::Linux }
}

fn endpoint(who: u8, [ready, serving, terminating]: Conditions) -> Endpoint {
    let address = std::net::IpAddr::from([10, 0, 0, who]);
    Endpoint {
        address,
        addresses: BTreeSet::from([address]),
        ready: Some(ready),
        serving: Some(serving),
        terminating: Some(terminating),
        node: Some(NodeName(if who == 1 { "here" } else { "there" }.to_owned())),
    }
}
