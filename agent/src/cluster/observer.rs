//! Everything that watches the cluster, for one drain at a time. At rest nothing does: no task, and no connection.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::{core::v1::Service as ApiService, discovery::v1::EndpointSlice};
use kube::{Api, Client};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    access::{Access, namespace},
    convert::pod::OwnPod,
    follow::follow,
    health::{self, Connections, Manner, Rate},
    nodes::{self, Known, NodesSetup},
    own_pod,
    places::Places,
    pod_in_drain::{NO_NAME, ReadPod, pod_outcome, pod_unknown, tell_of_pod},
    read::{self, Allowed},
    refusal::Refusal,
    sink::{Sink, WAITING},
};
use crate::{
    config::{Pod, Routing, RoutingSource},
    core::{
        cluster::{ClusterEvent, FenceRequest, NodeName, ObservationId, ReadId, ReadOutcome, ServiceName, Wanted},
        event::Event,
        termination::PodRead,
    },
    drive::clock,
    fence::client::{self, Asking},
};

/// How long a read of the API server may take, whatever `routing.poll.timeout` says.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(5);

/// Watches the cluster.
pub struct Observer {
    access: Access,
    pod: Pod,
    routing: Routing,
    connections: Arc<Connections>,
    left_out: Arc<AtomicU64>,
    events: mpsc::Sender<Event>,
    own_pod: mpsc::Sender<OwnPod>,
    under_way: Option<Observation>,
}

/// What an observer tells.
#[derive(Debug)]
pub struct Told {
    /// What the cluster says, in drains.
    pub events: mpsc::Receiver<Event>,
    /// What the agent's own pod is like, whenever it has been read.
    pub own_pod: mpsc::Receiver<OwnPod>,
}

/// One drain's. All its tasks end with it.
struct Observation {
    id: ObservationId,
    sink: Sink,
    tasks: JoinSet<()>,
    client: Option<Client>,
    namespace: String,
    nodes: Arc<Known>,
    /// What has been listed in this drain: what is refused later is not known to be nothing.
    services_listed: Arc<AtomicBool>,
    nodes_listed: Arc<AtomicBool>,
    local: BTreeMap<ServiceName, u16>,
    local_tasks: BTreeMap<ServiceName, tokio::task::AbortHandle>,
    /// Where questions to the fence go, if there is one.
    fence: Option<watch::Sender<Option<FenceRequest>>>,
}

impl Observer {
    /// At rest.
    pub fn new(access: Access, pod: Pod, routing: Routing) -> (Self, Told) {
        let (events, received) = mpsc::channel(WAITING);
        let (own_pod, received_own) = mpsc::channel(1);
        let (connections, left_out) = (Arc::default(), Arc::default());
        let observer = Self { access, pod, routing, connections, left_out, events, own_pod, under_way: None };
        (observer, Told { events: received, own_pod: received_own })
    }

    /// Reads the agent's own pod once, beside whatever else happens: nothing waits for it. The task ends with the read, and
    /// with it the connection.
    pub fn read_own_pod(&self) {
        if self.pod.name.is_empty() {
            tracing::warn!("the pod's grace period and probes are not known: {NO_NAME}");
            return;
        }
        let (access, pod, timeout) = (self.access.clone(), self.pod.clone(), self.routing.poll.timeout);
        let told = self.own_pod.clone();
        tokio::spawn(async move {
            match own_pod::at_start(&access, &pod, timeout).await {
                // If this fails the same waits there already, from a drain.
                Ok(own) => drop(told.try_send(own)),
                Err(why) => tracing::warn!(
                    "the pod's grace period and probes are not known: {why}; let the pod's service account get pods in its \
                     namespace, or set drain.maxWait where terminationGracePeriodSeconds is not 30"
                ),
            }
        });
    }

    /// How many parts of objects could not be read and were left out, since the agent started.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The observation under way.
    pub fn observation(&self) -> Option<ObservationId> {
        self.under_way.as_ref().map(|observation| observation.id)
    }

    /// Watches from now on. What was watched before is forgotten.
    pub async fn begin(&mut self, id: ObservationId) {
        self.forget();
        let sink = Sink::new(id, self.events.clone(), Arc::clone(&self.left_out));
        let mut observation = Observation {
            id,
            sink: sink.clone(),
            tasks: JoinSet::new(),
            client: None,
            namespace: self.pod.namespace.clone(),
            nodes: Arc::default(),
            services_listed: Arc::default(),
            nodes_listed: Arc::default(),
            local: BTreeMap::new(),
            local_tasks: BTreeMap::new(),
            fence: None,
        };
        match self.access.client(self.routing.poll.timeout).await {
            Ok(client) => {
                observation.namespace = namespace(&self.pod, &client);
                observation.client = Some(client.clone());
                self.spawn(&mut observation, &client);
            }
            Err(error) => {
                let why = error.to_string();
                observation.tasks.spawn(async move {
                    let unreadable = [
                        ClusterEvent::SlicesUnreadable(why.clone()),
                        ClusterEvent::ServicesUnreadable(why.clone()),
                        ClusterEvent::NodesUnreadable(why.clone()),
                        pod_unknown(&why),
                    ];
                    for event in unreadable {
                        if sink.tell(event).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }
        if let Some(place) = self.routing.fence.place() {
            let (questions, asked) = watch::channel(None);
            let asking = Asking {
                place: place.clone(),
                bounds: (self.routing.watch_lag, self.routing.poll.timeout),
                pod: format!("{}/{}", observation.namespace, self.pod.name),
            };
            let sink = observation.sink.clone();
            observation.tasks.spawn(async move {
                let (told, mut says) = mpsc::channel(WAITING);
                let passing = async {
                    while let Some(event) = says.recv().await {
                        if sink.tell(event).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::join!(client::ask(asking, asked, told), passing);
            });
            observation.fence = Some(questions);
        }
        self.under_way = Some(observation);
    }

    fn spawn(&self, observation: &mut Observation, client: &Client) {
        let Observation { sink, tasks, namespace, nodes, .. } = observation;
        let (routing, access) = (&self.routing, &self.access);
        let patience = routing.poll.timeout;
        let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
        tasks.spawn(follow(slices, access.clone(), sink.clone(), patience));
        let services = Api::<ApiService>::namespaced(client.clone(), namespace);
        tasks.spawn(follow(services, access.clone(), sink.clone(), patience));
        let reading = ReadPod {
            client: client.clone(),
            access: access.clone(),
            namespace: namespace.clone(),
            name: self.pod.name.clone(),
            uid: self.pod.uid.clone(),
            own: self.own_pod.clone(),
        };
        tasks.spawn(tell_of_pod(reading, sink.clone()));
        let nobody_asked = if routing.source == RoutingSource::Fence {
            Some("routing.source is fence: the fence alone asks the nodes")
        } else if routing.kube_proxy_healthz_port == 0 {
            Some("routing.kubeProxyHealthzPort is 0: no node is asked")
        } else {
            None
        };
        if let Some(why) = nobody_asked {
            let sink = sink.clone();
            tasks.spawn(async move {
                // Nobody listens any more if this fails.
                drop(sink.tell(ClusterEvent::NodesUnreadable(why.to_owned())).await);
            });
            return;
        }
        let setup = NodesSetup {
            client: client.clone(),
            access: access.clone(),
            sink: sink.clone(),
            port: routing.kube_proxy_healthz_port,
            ignore: routing.ignore_nodes.clone(),
            max_nodes: usize::try_from(routing.max_nodes).unwrap_or(usize::MAX),
            manner: self.manner(),
            connections: Arc::clone(&self.connections),
            rate: Arc::new(Rate::new(routing.poll.max_rate)),
            patience: READ_PATIENCE,
        };
        tasks.spawn(nodes::follow(setup, Arc::clone(nodes), Wanted::Yes { since: clock::now(), due: None }));
    }

    fn manner(&self) -> Manner {
        Manner { interval: self.routing.poll.interval, timeout: self.routing.poll.timeout }
    }

    /// Ends whatever watches, and closes its connections.
    pub fn forget(&mut self) {
        self.under_way = None;
    }

    /// Takes note of what passes by on its way to the core.
    pub fn note(&self, event: &ClusterEvent) {
        let Some(observation) = &self.under_way else { return };
        match event {
            ClusterEvent::ServicesListed(_) => observation.services_listed.store(true, Ordering::Relaxed),
            ClusterEvent::NodesListed(_) => observation.nodes_listed.store(true, Ordering::Relaxed),
            ClusterEvent::ConsistentRead(_, ReadOutcome::Shows(snapshot)) => {
                observation.nodes.seen(snapshot.nodes.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Says whether a node's next answer is of use.
    pub fn want(&self, node: &NodeName, wanted: Wanted) {
        if let Some(observation) = &self.under_way {
            observation.nodes.want(node, wanted);
        }
    }

    /// The nodes that are asked.
    pub fn asked(&self) -> Vec<NodeName> {
        self.under_way.as_ref().map(|observation| observation.nodes.asked()).unwrap_or_default()
    }

    /// Which node an address is of; nothing at rest, and until the nodes are listed.
    pub fn places(&self) -> Arc<Places> {
        self.under_way.as_ref().map(|observation| observation.nodes.places()).unwrap_or_default()
    }

    /// E6: asks this node's ports of these Services from now on, and no others.
    pub fn ask_local(&mut self, ports: &BTreeMap<ServiceName, u16>, addresses: &[IpAddr]) {
        let manner = self.manner();
        let Some(observation) = &mut self.under_way else { return };
        if observation.local == *ports {
            return;
        }
        let before = std::mem::replace(&mut observation.local, ports.clone());
        for (service, port) in ports.iter().filter(|(service, port)| before.get(*service) != Some(*port)) {
            if let Some(task) = observation.local_tasks.remove(service) {
                task.abort();
            }
            let (reports, mut received) = mpsc::channel(1);
            let addresses = health::one_of_each(addresses, *port);
            let connections = Arc::clone(&self.connections);
            let asking = health::poll_local(service.clone(), addresses, manner, connections, reports);
            let sink = observation.sink.clone();
            let passing = async move {
                while let Some(report) = received.recv().await {
                    if sink.tell(ClusterEvent::LocalEndpoints(report)).await.is_err() {
                        return;
                    }
                }
            };
            let task = observation.tasks.spawn(async move {
                tokio::join!(asking, passing);
            });
            observation.local_tasks.insert(service.clone(), task);
        }
    }

    /// C4: asks the fence. A question takes the place of the one before: it counts for all that the earlier one would.
    pub fn ask_fence(&self, request: FenceRequest) {
        if let Some(questions) = self.under_way.as_ref().and_then(|observation| observation.fence.as_ref()) {
            questions.send_replace(Some(request));
        }
    }

    /// C9: reads consistently, and tells what it showed.
    pub fn read(&mut self, id: ReadId) {
        let access = self.access.clone();
        let Some(observation) = &mut self.under_way else { return };
        let sink = observation.sink.clone();
        let Some(client) = observation.client.clone() else {
            let why = "the API server cannot be asked".to_owned();
            observation.tasks.spawn(async move {
                drop(sink.tell(ClusterEvent::ConsistentRead(id, ReadOutcome::Forbidden(why))).await);
            });
            return;
        };
        let (namespace, ignored) = (observation.namespace.clone(), observation.nodes.ignored());
        let allowed = Allowed {
            services: observation.services_listed.load(Ordering::Relaxed),
            nodes: observation.nodes_listed.load(Ordering::Relaxed),
        };
        observation.tasks.spawn(async move {
            let outcome = match read::snapshot(&client, &access, &namespace, allowed, &ignored, READ_PATIENCE).await {
                Ok(snapshot) => ReadOutcome::Shows(snapshot),
                Err(Refusal::Denied(why)) => ReadOutcome::Forbidden(why),
                Err(refusal) => ReadOutcome::Failed(refusal.words().to_owned()),
            };
            drop(sink.tell(ClusterEvent::ConsistentRead(id, outcome)).await);
        });
    }

    /// S5: reads the pod, and tells whether it is terminating.
    pub fn read_pod(&mut self, id: ReadId) {
        let access = self.access.clone();
        let Some(observation) = &mut self.under_way else { return };
        let (sink, pod) = (observation.sink.clone(), self.pod.clone());
        let (client, namespace) = (observation.client.clone(), observation.namespace.clone());
        observation.tasks.spawn(async move {
            let outcome = match client {
                None => PodRead::Forbidden("the API server cannot be asked".to_owned()),
                Some(client) => {
                    let uid = Some(pod.uid.as_str()).filter(|uid| !uid.is_empty());
                    pod_outcome(&client, &access, &namespace, &pod.name, uid).await
                }
            };
            drop(sink.send(Event::PodRead(id, outcome)).await);
        });
    }
}
