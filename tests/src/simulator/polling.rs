//! Requests of the agent: to the nodes' health servers, to the pod's node for its local endpoints, and to the fence.

use std::{collections::BTreeMap, time::Duration};

use lastsyn::core::{
    cluster::{
        ClusterEvent, ConnectionId, FenceRequest, HealthOutcome, HealthReport, LocalEndpointsOutcome,
        LocalEndpointsReport,
    },
    confirm::{FenceProgress, FenceReach},
    listener::Family,
};

use super::{
    fence::Fence,
    kube_proxy::{Answer, KubeProxy, Scene},
    node::NodeId,
    observer::Observer,
    schedule::{Event, FenceEvent, ObserverEvent},
    timeline::name,
    translate,
};

/// `poll.timeout`: how long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// A fence's list of the nodes is not older than this.
const LISTED_EVERY: Duration = Duration::from_millis(700);
/// The longest time between an answer and the next request.
const SLOWEST: Duration = Duration::from_secs(1);

impl Observer {
    /// A request reaches its node. `Some` where its answer is back at once; others take their time.
    pub(super) fn poll(&mut self, node: NodeId, proxy: &KubeProxy, scene: &mut Scene<'_>) -> Option<ClusterEvent> {
        if !self.pollers[node.0].asks {
            return None;
        }
        let sent_at = self.pollers[node.0].sent_at;
        let (connection, outcome) = self.ask(node, proxy, scene);
        let report =
            HealthReport { node: translate::node_name(node), connection, sent_at, received_at: scene.now, outcome };
        if report.outcome == HealthOutcome::TimedOut {
            self.pollers[node.0].answer = Some(report);
            self.plan(scene.now.max(sent_at + PATIENCE), ObserverEvent::PollAnswered(node), scene);
            return None;
        }
        if self.chance.one_in(4) {
            self.pollers[node.0].answer = Some(report);
            let back = self.latency();
            self.plan(scene.now + back, ObserverEvent::PollAnswered(node), scene);
            return None;
        }
        self.ask_again(node, scene);
        Some(ClusterEvent::Health(report))
    }

    /// An answer arrives that took its time.
    pub(super) fn poll_answered(&mut self, node: NodeId, scene: &mut Scene<'_>) -> Option<ClusterEvent> {
        let mut report = self.pollers[node.0].answer.take()?;
        report.received_at = scene.now;
        self.ask_again(node, scene);
        self.pollers[node.0].asks.then_some(ClusterEvent::Health(report))
    }

    fn ask(&mut self, node: NodeId, proxy: &KubeProxy, scene: &mut Scene<'_>) -> (ConnectionId, HealthOutcome) {
        if let Some((connection, process)) = self.pollers[node.0].connection {
            if !proxy.up || proxy.process != process {
                self.pollers[node.0].connection = None;
                return (connection, HealthOutcome::Broken);
            }
            return (connection, outcome(proxy.answer(scene.now)));
        }
        let connection = self.connect();
        let answer = proxy.answer(scene.now);
        if !matches!(answer, Answer::Refused) {
            self.pollers[node.0].connection = Some((connection, proxy.process));
        }
        (connection, outcome(answer))
    }

    /// The connection to a node breaks, for no fault of the node's.
    pub(super) fn break_connection(&mut self, node: NodeId, scene: &mut Scene<'_>) -> Option<ClusterEvent> {
        let (connection, _) = self.pollers[node.0].connection.take()?;
        scene.timeline.note(scene.now, || format!("agent: the connection to {} breaks", name(node)));
        let (node, now) = (translate::node_name(node), scene.now);
        let outcome = HealthOutcome::Broken;
        Some(ClusterEvent::Health(HealthReport { node, connection, sent_at: now, received_at: now, outcome }))
    }

    fn ask_again(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        let there = self.chance.waiting(Duration::from_millis(3), Duration::from_millis(300));
        let sent_at = scene.now + self.pace(scene);
        self.pollers[node.0].sent_at = sent_at;
        self.plan(sent_at + there, ObserverEvent::Poll(node), scene);
    }

    /// Between an answer and the next request: the longer it goes on, the longer.
    fn pace(&self, scene: &Scene<'_>) -> Duration {
        let so_far = scene.now.since(self.began);
        self.plan.interval.max(so_far / 10).min(SLOWEST)
    }

    fn connect(&mut self) -> ConnectionId {
        self.next_connection += 1;
        ConnectionId(self.next_connection)
    }

    /// E6: a request for a Service's local endpoints reaches the pod's node.
    pub(super) fn poll_local(&mut self, service: usize, proxy: &KubeProxy, scene: &mut Scene<'_>) -> ClusterEvent {
        use LocalEndpointsOutcome::{Broken, Endpoints, Unknown};
        let broken = self.local.connection.filter(|(_, process)| !proxy.up || proxy.process != *process);
        let (connection, outcome) = if let Some((connection, _)) = broken {
            self.local.connection = None;
            (connection, Broken)
        } else if !proxy.up {
            (self.connect(), Broken)
        } else {
            let connection = self.local.connection.map_or_else(|| self.connect(), |(connection, _)| connection);
            self.local.connection = Some((connection, proxy.process));
            let frozen = proxy.is_frozen(scene.now);
            (connection, if frozen { Unknown } else { Endpoints(proxy.local_endpoints(service)) })
        };
        self.plan(scene.now + self.pace(scene), ObserverEvent::PollLocal(service), scene);
        ClusterEvent::LocalEndpoints(LocalEndpointsReport {
            service: translate::service_name(service),
            connection,
            sent_at: scene.now,
            received_at: scene.now,
            outcome,
        })
    }

    /// The agent asks the fence: from now on all that it says is for this request.
    pub(super) fn asks_the_fence(&mut self, request: FenceRequest, scene: &mut Scene<'_>) {
        let first = self.fence.request.replace(request).is_none();
        (self.fence.answers, self.fence.told, self.fence.listed_at) = (true, BTreeMap::new(), None);
        let latency = self.latency();
        scene.schedule.add(scene.now + latency, Event::Fence(FenceEvent::Asked(request)));
        self.fence.taken = false;
        if first {
            self.plan(scene.now, ObserverEvent::PollFence, scene);
        }
    }

    /// A request for progress reaches the fence, which tells at once.
    pub(super) fn poll_fence(
        &mut self,
        fence: &Fence,
        proxies: &[KubeProxy],
        scene: &mut Scene<'_>,
    ) -> Vec<ClusterEvent> {
        let there = self.latency();
        let sent_at = scene.now - there.min(self.plan.interval);
        let again = scene.now + self.pace(scene);
        self.plan(again, ObserverEvent::PollFence, scene);
        if fence.is_away(scene.now) {
            return if std::mem::take(&mut self.fence.answers) {
                vec![ClusterEvent::FenceFails("nothing answers".to_owned())]
            } else {
                Vec::new()
            };
        }
        let Some(asked) = self.fence.request else { return Vec::new() };
        if !std::mem::replace(&mut self.fence.answers, true) {
            // It is back, and knows nothing of the question.
            self.asks_the_fence(asked, scene);
        }
        let mut told = Vec::new();
        if !std::mem::replace(&mut self.fence.taken, true) {
            told.push(ClusterEvent::FenceAnswers);
        }
        if self.fence.listed_at.is_none_or(|at| scene.now.since(at) >= LISTED_EVERY) {
            self.fence.listed_at = Some(scene.now);
            let nodes = translate::nodes(scene.api, super::api::count(scene.api.nodes.len()));
            told.push(ClusterEvent::FenceNodes { nodes, as_of: sent_at });
        }
        let shown = fence.shown(proxies, scene.now);
        told.extend(self.reach(&shown, proxies));
        told.extend(shown.into_iter().map(|(node, family, request)| {
            let (node, received_at) = (translate::node_name(node), scene.now);
            ClusterEvent::Fence(FenceProgress { request, node, family, stood_at: sent_at, received_at })
        }));
        told
    }

    /// What is new of nodes that have not shown everything.
    fn reach(&mut self, shown: &[(NodeId, Family, FenceRequest)], proxies: &[KubeProxy]) -> Vec<ClusterEvent> {
        let mut told = Vec::new();
        for proxy in proxies {
            for family in Family::ALL {
                if shown.iter().any(|(node, of, _)| *node == proxy.id && *of == family) {
                    continue;
                }
                let reach = if Fence::cannot_see(proxy) {
                    FenceReach::Unobservable("it has no status".to_owned())
                } else {
                    FenceReach::Awaited
                };
                let before = self.fence.told.insert((proxy.id.0, family), reach.clone());
                if before.as_ref() != Some(&reach) {
                    told.push(ClusterEvent::FenceReach { node: translate::node_name(proxy.id), family, reach });
                }
            }
        }
        told
    }
}

fn outcome(answer: Answer) -> HealthOutcome {
    match answer {
        Answer::Refused => HealthOutcome::Refused,
        Answer::Silent => HealthOutcome::TimedOut,
        Answer::NoStatus => HealthOutcome::NoStatus("it has no status".to_owned()),
        Answer::Status(status) => HealthOutcome::Status(status),
    }
}
