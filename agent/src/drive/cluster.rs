//! The loop's side of the cluster: what the core wants done, and what it is to be told of what came of it.

use std::{collections::BTreeSet, net::IpAddr};

use tokio::sync::mpsc;

use crate::{
    cluster::{Access, Observer},
    config::Config,
    core::{
        clock::Monotonic,
        cluster::{ClusterEvent, NodeName},
        confirm::Bounds,
        drain::Core,
        event::{Action, Event},
        settings::RoutingSettings,
    },
};

/// How many events are taken in before the loop looks at anything else.
const AT_ONCE: usize = 32;

/// The cluster, where it is watched.
pub(super) struct Cluster {
    observer: Observer,
    events: mpsc::Receiver<Event>,
    host_ips: Vec<IpAddr>,
    /// The last change that the pollers know of.
    change: (u64, Option<Monotonic>),
}

/// By the configuration and the environment; `None` where it is not watched.
pub(super) fn cluster(config: &Config) -> Option<Cluster> {
    let access = Access::by_environment().filter(|_| config.routing.enabled)?;
    tracing::info!(
        api = access.words(),
        pod = config.pod.name,
        node = config.pod.node_name,
        "routing is watched in drains"
    );
    if config.pod.node_name.is_empty() {
        tracing::warn!(
            "pod.nodeName is not set: a Service with a Local policy holds drains for as long as its slices list the pod"
        );
    }
    let (observer, events) = Observer::new(access, config.pod.clone(), config.routing.clone());
    Some(Cluster { observer, events, host_ips: config.pod.host_ips.clone(), change: (0, None) })
}

/// What the core is to know of the cluster. `addresses` are those of the network namespace.
pub(super) fn settings(config: &Config, addresses: &[IpAddr]) -> RoutingSettings {
    let routing = &config.routing;
    let own = if config.pod.ips.is_empty() { addresses } else { &config.pod.ips };
    RoutingSettings {
        pod: own.iter().copied().collect::<BTreeSet<_>>(),
        node: NodeName(config.pod.node_name.clone()),
        bounds: Bounds { watch_lag: routing.watch_lag, sync_time: routing.sync_time, min_sync: routing.min_sync },
        load_balancer_window: config.load_balancer.window,
        poll_timeout: routing.poll.timeout,
        fence: routing.fence.place().is_some(),
        accept: routing.accept.clone(),
        max_nodes: routing.max_nodes,
    }
}

impl Cluster {
    /// Does what the core wants done of the cluster; `false` if it is something else.
    pub(super) async fn carry_out(&mut self, action: &Action) -> bool {
        match action {
            Action::ObserveCluster(observation) => {
                self.change = (0, None);
                self.observer.begin(*observation).await;
            }
            Action::ForgetCluster => self.observer.forget(),
            Action::ReadConsistently(id) => self.observer.read(*id),
            Action::ReadPod(id) => self.observer.read_pod(*id),
            Action::AskFence(request) => self.observer.ask_fence(*request),
            _ => return false,
        }
        true
    }

    /// The next events; some, at the most.
    pub(super) async fn next(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.events.recv_many(&mut events, AT_ONCE).await;
        events
    }

    /// Takes note of an event before the core has it.
    pub(super) fn before(&self, event: &ClusterEvent) {
        self.observer.note(event);
    }

    /// Says what is of use from now on, after the core has taken an event in.
    pub(super) fn after(&mut self, event: &ClusterEvent, core: &Core, now: Monotonic) {
        let change = core.last_change();
        if change != self.change {
            self.change = change;
            for node in self.observer.asked() {
                self.want(&node, core, now);
            }
        } else if let ClusterEvent::Health(report) = event {
            self.want(&report.node, core, now);
        }
        if matches!(
            event,
            ClusterEvent::SlicesListed(_)
                | ClusterEvent::SliceWritten(_)
                | ClusterEvent::ServicesListed(_)
                | ClusterEvent::ServiceWritten(_)
                | ClusterEvent::ServiceRemoved(_)
        ) {
            self.observer.ask_local(&core.local_ports(), &self.host_ips);
        }
    }

    fn want(&self, node: &NodeName, core: &Core, now: Monotonic) {
        self.observer.want(node, core.health_wanted(node, now));
    }

    /// How many parts of objects could not be read, since the agent started.
    pub(super) fn left_out(&self) -> u64 {
        self.observer.left_out()
    }
}
