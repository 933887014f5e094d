//! The loop's side of the cluster: what the core wants done, and what it is to be told of what came of it.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use crate::{
    cluster::{Access, Observer, OwnPod, Places, Told},
    config::{Config, Drain, MaxWait, format_duration},
    core::{
        clock::Monotonic,
        cluster::{ClusterEvent, HealthReport, NodeName, ObservationId},
        confirm::Bounds,
        drain::Core,
        event::{Action, Event},
        probe::ProbePort,
        settings::RoutingSettings,
    },
};

/// How many events are taken in before the loop looks at anything else.
const AT_ONCE: usize = 32;

/// The cluster, where it is watched.
pub(super) struct Cluster {
    observer: Observer,
    told: Told,
    host_ips: Vec<IpAddr>,
    /// What the operator says of the bound.
    drain: Drain,
    /// The pod's grace period, once it has been read.
    grace_period: Option<Duration>,
    /// Kubelet's probes, since the pod was last read and until they are taken.
    probes: Option<Vec<ProbePort>>,
    /// The last change that the pollers know of.
    change: (u64, Option<Monotonic>),
}

/// By the configuration and the environment; `None` where it is not watched.
pub(super) fn cluster(config: &Config) -> Option<Cluster> {
    let access = Access::of(config).filter(|_| config.routing.enabled)?;
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
    let (observer, told) = Observer::new(access, config.pod.clone(), config.routing.clone());
    observer.read_own_pod();
    let host_ips = config.pod.host_ips.clone();
    let drain = config.drain.clone();
    Some(Cluster { observer, told, host_ips, drain, grace_period: None, probes: None, change: (0, None) })
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

/// What the cluster says; never, where it is not watched.
pub(super) async fn events(cluster: &mut Option<Cluster>) -> Vec<Event> {
    match cluster {
        Some(cluster) => cluster.next().await,
        None => std::future::pending().await,
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

    /// The next events; some, at the most, and sometimes none.
    async fn next(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        tokio::select! {
            biased;
            Some(own) = self.told.own_pod.recv() => events.extend(self.know(&own)),
            _ = self.told.events.recv_many(&mut events, AT_ONCE) => {}
        }
        events
    }

    /// Kubelet's probes, where the pod has been read since the last call.
    pub(super) fn take_probes(&mut self) -> Option<Vec<ProbePort>> {
        self.probes.take()
    }

    /// S1: what the pod's grace period says of the bound; nothing where that was known. What of the configuration does not
    /// fit it is said.
    fn know(&mut self, own: &OwnPod) -> Option<Event> {
        self.probes = Some(own.probes.clone());
        let grace = own.grace_period.filter(|grace| self.grace_period.replace(*grace) != Some(*grace))?;
        let bound = self.drain.bound_within(Some(grace));
        tracing::info!(
            grace_period = format_duration(grace),
            bound = format_duration(bound),
            probes = own.probes.len(),
            "the pod has been read"
        );
        for warning in self.drain.grace_warnings(grace) {
            tracing::warn!("{warning}");
        }
        (self.drain.max_wait == MaxWait::Auto).then_some(Event::MaxWaitKnown(bound))
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
        } else if let ClusterEvent::Health(HealthReport { node, .. }) | ClusterEvent::AttemptThrough { node, .. } =
            event
        {
            self.want(node, core, now);
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

    /// Which node an address is of, as far as is known in this drain.
    pub(super) fn places(&self) -> Arc<Places> {
        self.observer.places()
    }

    /// The observation under way.
    pub(super) fn observation(&self) -> Option<ObservationId> {
        self.observer.observation()
    }

    /// How many parts of objects could not be read, since the agent started.
    pub(super) fn left_out(&self) -> u64 {
        self.observer.left_out()
    }
}
