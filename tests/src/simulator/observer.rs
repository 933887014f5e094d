//! The agent's own view of the cluster: list and watch, consistent reads, and requests to the nodes and the fence.

use std::{collections::BTreeMap, time::Duration};

use lastsyn::core::{
    clock::Monotonic,
    cluster::{ClusterEvent, ConnectionId, FenceRequest, HealthReport, ObservationId, ReadId},
    confirm::FenceReach,
    listener::Family,
};

use super::{
    api::{Api, Content, SliceWrite},
    chance::{Chance, Stream},
    kube_proxy::Scene,
    node::NodeId,
    plan::AgentPlan,
    schedule::{Event, ObserverEvent},
    translate,
};

/// The observer of one agent.
#[derive(Debug)]
pub(super) struct Observer {
    /// Which agent's: what was on its way to an earlier one is lost.
    pub(super) life: u32,
    pub(super) plan: AgentPlan,
    pub(super) chance: Chance,
    /// How many writes of each resource it has; `None` before the first list.
    slices: Option<u32>,
    services: Option<u32>,
    nodes: Option<u32>,
    /// For which drain.
    pub(super) observation: Option<ObservationId>,
    /// When list and watch began.
    pub(super) began: Monotonic,
    gap_until: Monotonic,
    /// What each read shows that is under way.
    reads: BTreeMap<ReadId, [u32; 3]>,
    /// What the newest answer to one showed: after so many writes of slices and Services.
    pub(super) last_read: Option<[u32; 2]>,
    pub(super) pollers: Vec<Poller>,
    pub(super) local: Poller,
    pub(super) next_connection: u64,
    pub(super) fence: FenceTalk,
    /// C12: a node has given this agent a status.
    pub(super) status_given: bool,
}

/// What is known of the talk with the fence.
#[derive(Clone, Debug, Default)]
pub(super) struct FenceTalk {
    /// The newest request.
    pub(super) request: Option<FenceRequest>,
    /// It answered when it was last asked.
    pub(super) answers: bool,
    /// It has said that it takes the newest request.
    pub(super) taken: bool,
    pub(super) listed_at: Option<Monotonic>,
    /// What it has said of each node and family.
    pub(super) told: BTreeMap<(usize, Family), FenceReach>,
}

/// Requests to one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Poller {
    pub(super) asks: bool,
    /// The connection that is kept open, and the process that it is with.
    pub(super) connection: Option<(ConnectionId, u32)>,
    pub(super) sent_at: Monotonic,
    /// An answer on its way.
    pub(super) answer: Option<HealthReport>,
}

impl Observer {
    pub(super) fn new(seed: u64, life: u32, plan: AgentPlan, nodes: usize, next_connection: u64) -> Self {
        Self {
            life,
            plan,
            chance: Chance::of(seed.wrapping_add(u64::from(life) << 40), Stream::Observer),
            slices: None,
            services: None,
            nodes: None,
            observation: None,
            began: Monotonic::default(),
            gap_until: Monotonic::default(),
            reads: BTreeMap::new(),
            last_read: None,
            pollers: vec![Poller::default(); nodes],
            local: Poller::default(),
            next_connection,
            fence: FenceTalk::default(),
            status_given: false,
        }
    }

    /// List and watch begin.
    pub(super) fn begin(&mut self, observation: ObservationId, scene: &mut Scene<'_>) {
        self.observation = Some(observation);
        self.began = scene.now;
        for event in [ObserverEvent::ListSlices, ObserverEvent::ListServices, ObserverEvent::ListNodes] {
            let latency = self.latency();
            self.plan(scene.now + latency, event, scene);
        }
    }

    /// A slice of the pod's namespace was written.
    pub(super) fn slice_written(&mut self, scene: &mut Scene<'_>) {
        if self.slices.is_some() {
            self.deliver(ObserverEvent::DeliverSlice, scene);
        }
    }

    pub(super) fn service_written(&mut self, scene: &mut Scene<'_>) {
        if self.services.is_some() {
            self.deliver(ObserverEvent::DeliverService, scene);
        }
    }

    pub(super) fn node_written(&mut self, scene: &mut Scene<'_>) {
        if self.nodes.is_some() {
            self.deliver(ObserverEvent::DeliverNode, scene);
        }
    }

    /// The watch brings nothing for a while; then it goes on, or a list replaces it.
    pub(super) fn gap(&mut self, length: Duration, relists: bool, scene: &mut Scene<'_>) {
        self.gap_until = self.gap_until.max(scene.now + length);
        if relists {
            self.plan(self.gap_until, ObserverEvent::Relist, scene);
        }
        scene.timeline.note(scene.now, || format!("agent: its watch brings nothing for {length:?}"));
    }

    /// C9.
    /// How many writes of slices the agent has been told of.
    pub(super) fn slices_delivered(&self) -> u32 {
        self.slices.unwrap_or_default()
    }

    pub(super) fn read(&mut self, id: ReadId, scene: &mut Scene<'_>) {
        let latency = self.latency();
        self.plan(scene.now + latency, ObserverEvent::ReadTaken(id), scene);
    }

    pub(super) fn read_taken(&mut self, id: ReadId, scene: &mut Scene<'_>) {
        let api = scene.api;
        let length = |length| u32::try_from(length).unwrap_or(u32::MAX);
        self.reads.insert(id, [api.written(), length(api.services.len()), length(api.nodes.len())]);
        let latency = self.latency();
        self.plan(scene.now + latency, ObserverEvent::ReadAnswered(id), scene);
    }

    /// What became of a read.
    pub(super) fn read_answered(&mut self, id: ReadId, scene: &mut Scene<'_>) -> Option<ClusterEvent> {
        use lastsyn::core::cluster::ReadOutcome::{Failed, Forbidden, Shows};
        let shown = self.reads.remove(&id)?;
        let outcome = if self.plan.api_forbidden {
            Forbidden("it may not".to_owned())
        } else if self.chance.percent(self.plan.read_failures) {
            Failed("it timed out".to_owned())
        } else {
            self.last_read = Some([shown[0], shown[1]]);
            let mut snapshot = translate::snapshot(scene.api, shown);
            snapshot.nodes = snapshot.nodes.filter(|_| !self.plan.nodes_forbidden);
            Shows(snapshot)
        };
        Some(ClusterEvent::ConsistentRead(id, outcome))
    }

    /// A list arrives, or a delivery of the watch.
    pub(super) fn watched(&mut self, event: ObserverEvent, scene: &mut Scene<'_>) -> Vec<ClusterEvent> {
        let listing =
            matches!(event, ObserverEvent::ListSlices | ObserverEvent::ListServices | ObserverEvent::ListNodes);
        if scene.now < self.gap_until && !listing {
            self.plan(self.gap_until, event, scene);
            return Vec::new();
        }
        match event {
            ObserverEvent::ListSlices | ObserverEvent::ListServices | ObserverEvent::ListNodes => {
                self.list(event, scene)
            }
            ObserverEvent::DeliverSlice => self.next_slice(scene.api).into_iter().collect(),
            ObserverEvent::DeliverService => self.next_service(scene.api).into_iter().collect(),
            ObserverEvent::DeliverNode => self.next_node(scene).into_iter().collect(),
            ObserverEvent::Relist => self.relist(scene.api),
            _ => Vec::new(),
        }
    }

    fn list(&mut self, event: ObserverEvent, scene: &mut Scene<'_>) -> Vec<ClusterEvent> {
        let api = scene.api;
        // From the API server's cache: it may be behind.
        let listed_at = scene.now - self.chance.below(self.plan.stale_list);
        let (shown, received, after, behind) = match event {
            ObserverEvent::ListSlices => {
                let received = *self.slices.insert(api.written_by(listed_at));
                let listed = ClusterEvent::SlicesListed(translate::slices(api, received));
                (listed, received, ObserverEvent::DeliverSlice, api.slices.len())
            }
            ObserverEvent::ListServices if self.plan.services_forbidden => {
                return vec![ClusterEvent::ServicesUnreadable("it may not".to_owned())];
            }
            ObserverEvent::ListNodes if self.plan.nodes_forbidden => {
                return vec![ClusterEvent::NodesUnreadable("it may not".to_owned())];
            }
            ObserverEvent::ListServices => {
                let received = *self.services.insert(api.services_by(listed_at));
                let listed = ClusterEvent::ServicesListed(translate::services(api, received));
                (listed, received, ObserverEvent::DeliverService, api.services.len())
            }
            _ => {
                let by_then = api.nodes.iter().filter(|write| write.at <= listed_at).count();
                let received = *self.nodes.insert(u32::try_from(by_then).unwrap_or(u32::MAX));
                let listed = translate::nodes(api, received);
                for write in api.nodes.iter().take(by_then) {
                    self.follow(write.node, write.there, scene);
                }
                (ClusterEvent::NodesListed(listed), received, ObserverEvent::DeliverNode, api.nodes.len())
            }
        };
        for _ in received as usize..behind {
            self.deliver(after, scene);
        }
        vec![shown]
    }

    /// Everything anew, after a gap: one step for each resource.
    fn relist(&mut self, api: &Api) -> Vec<ClusterEvent> {
        let mut listed = Vec::new();
        if let Some(received) = &mut self.slices {
            *received = api.written();
            listed.push(ClusterEvent::SlicesListed(translate::slices(api, *received)));
        }
        if let Some(received) = &mut self.services {
            *received = u32::try_from(api.services.len()).unwrap_or(u32::MAX);
            listed.push(ClusterEvent::ServicesListed(translate::services(api, *received)));
        }
        listed
    }

    fn next_slice(&mut self, api: &Api) -> Option<ClusterEvent> {
        let received = self.slices.as_mut()?;
        loop {
            let SliceWrite { object, content, .. } = api.slices.get(*received as usize)?;
            *received += 1;
            match content {
                Content::Slice(body) => {
                    return Some(ClusterEvent::SliceWritten(translate::slice(*object, *received, body)));
                }
                Content::Gone => return Some(ClusterEvent::SliceRemoved(translate::slice_name(*object))),
                Content::Marker(..) => {} // of another namespace
            }
        }
    }

    fn next_service(&mut self, api: &Api) -> Option<ClusterEvent> {
        let received = self.services.as_mut()?;
        let write = api.services.get(*received as usize)?;
        *received += 1;
        Some(ClusterEvent::ServiceWritten(translate::service(write.service, *received, write.policy)))
    }

    fn next_node(&mut self, scene: &mut Scene<'_>) -> Option<ClusterEvent> {
        let received = self.nodes.as_mut()?;
        let write = *scene.api.nodes.get(*received as usize)?;
        *received += 1;
        self.follow(write.node, write.there, scene);
        Some(if write.there {
            ClusterEvent::NodeAdded(translate::node(write.node))
        } else {
            ClusterEvent::NodeRemoved(translate::node_name(write.node))
        })
    }

    /// A node's health server is asked from now on, or no longer.
    pub(super) fn follow(&mut self, node: NodeId, there: bool, scene: &mut Scene<'_>) {
        let first = self.chance.ms(0, 60);
        let poller = &mut self.pollers[node.0];
        if !std::mem::replace(&mut poller.asks, there) && there {
            poller.sent_at = scene.now;
            self.plan(scene.now + first, ObserverEvent::Poll(node), scene);
        }
    }

    fn deliver(&mut self, event: ObserverEvent, scene: &mut Scene<'_>) {
        let lag = self.chance.waiting(self.plan.lag.0, self.plan.lag.1);
        self.plan(scene.now + lag, event, scene);
    }

    pub(super) fn latency(&mut self) -> Duration {
        self.chance.waiting(self.plan.latency, self.plan.latency * 10)
    }

    pub(super) fn plan(&self, at: Monotonic, event: ObserverEvent, scene: &mut Scene<'_>) {
        scene.schedule.add(at, Event::Observer(self.life, event));
    }
}
