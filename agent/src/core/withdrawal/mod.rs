//! E5 and E6: whether the cluster has withdrawn the pod. What slices and Services say ([`routing`](super::routing)), what
//! each node has confirmed of it ([`confirm`](super::confirm)), what load balancers still do
//! ([`load_balancer`](super::load_balancer)), and the consistent read that closes it all (C9).

mod consistent;
mod fence;
mod holds;
mod nodes;
mod outstanding;
mod tell;
mod wanted;

use std::{collections::BTreeSet, time::Duration};

use super::{
    clock::Monotonic,
    cluster::{ClusterEvent, FenceRequest, NodeName, ObservationId, ReadId, ReadOutcome, ServiceName},
    confirm::{Confirmations, StatusGiven, Tally},
    event::ByFamily,
    follow::Asked,
    journal::{Journal, Transition},
    listener::Family,
    load_balancer::LoadBalancers,
    routing::{Changes, Routing, Turn},
    settings::RoutingSettings,
    verdict::NotObserved,
};
use consistent::{ConsistentRead, Fact};
use fence::FenceContact;

/// What is known of the cluster, for one drain.
#[derive(Clone, Debug)]
pub(super) struct Withdrawal {
    observation: ObservationId,
    settings: RoutingSettings,
    routing: Routing,
    confirmations: Confirmations,
    balancers: LoadBalancers,
    nodes: Nodes,
    /// When something last came that an end would rest on.
    evidence_at: Monotonic,
    /// What slices and Services say, as of the last event: with many nodes most events are of nodes, and leave it as it is.
    summary: Summary,
    /// E5 but for the consistent read, as of the last event.
    withdrawn: bool,
    read: ConsistentRead,
    /// When the drain began.
    began: Monotonic,
    /// Slices cannot be read, and none ever were: in words, and when that became known.
    blind: Option<(String, Monotonic)>,
    /// When the first list of slices completed.
    listed_at: Option<Monotonic>,
    /// W8: the ways to the pod that its own object shows.
    pod_paths: BTreeSet<NotObserved>,
    fence: FenceContact,
    /// Since when [`withdrawn`](Self::withdrawn) is so.
    withdrawn_at: Option<Monotonic>,
}

/// What [`Routing`] says in all.
#[derive(Clone, Debug, Default)]
struct Summary {
    /// Every Service that lists the pod is withdrawn.
    unrouted: bool,
    /// The families that nodes are to confirm.
    families: BTreeSet<Family>,
    /// S5: a slice lists the pod as terminating.
    terminating: bool,
}

/// The list of nodes.
#[derive(Clone, Debug)]
enum Nodes {
    /// It has not completed.
    Awaited,
    /// These.
    Listed(BTreeSet<NodeName>),
    /// We cannot read it. The fence tells of these, by a consistent read of then or later.
    ByFence(BTreeSet<NodeName>, Monotonic),
    /// It cannot be read; in words.
    Unreadable(String),
}

/// What is to be asked of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// C9.
    Read(ReadId),
    /// C4.
    Fence(FenceRequest),
}

impl Withdrawal {
    /// Nothing is known yet. `given` is what the last drain of this agent left (C12).
    pub(super) fn new(
        settings: &RoutingSettings,
        observation: ObservationId,
        given: StatusGiven,
        now: Monotonic,
    ) -> Self {
        Self {
            observation,
            routing: Routing::new(settings.pod.clone(), settings.node.clone()),
            confirmations: Confirmations::new(settings.bounds, given),
            balancers: LoadBalancers::new(settings.load_balancer_window),
            settings: settings.clone(),
            nodes: Nodes::Awaited,
            evidence_at: now,
            summary: Summary::default(),
            withdrawn: false,
            read: ConsistentRead::default(),
            began: now,
            blind: None,
            listed_at: None,
            pod_paths: BTreeSet::new(),
            fence: FenceContact::default(),
            withdrawn_at: None,
        }
    }

    /// Whose events are this drain's.
    pub(super) fn observation(&self) -> ObservationId {
        self.observation
    }

    /// Takes in what the cluster says.
    pub(super) fn handle(&mut self, event: &ClusterEvent, now: Monotonic, journal: &mut Journal) {
        let before = self.tallies();
        match event {
            ClusterEvent::SlicesListed(slices) => {
                let changes = self.routing.slices_listed(slices, now);
                self.blind = None;
                self.listed_at.get_or_insert(now);
                self.read.start_anew();
                self.policies_changed(&changes, now, journal);
            }
            ClusterEvent::SlicesUnreadable(why) => {
                if !self.routing.is_listed() && self.blind.is_none() {
                    journal.record(now, Transition::SlicesUnreadable(why.clone()));
                    self.blind = Some((why.clone(), now));
                }
            }
            ClusterEvent::PodPaths(paths) => self.pod_paths.clone_from(paths),
            ClusterEvent::SliceWritten(slice) => {
                let changes = self.routing.slice_written(slice, now);
                self.read.delivered(Fact::Slice(slice.name.clone(), Some(slice.version.clone())), now);
                self.changed(&changes, now, journal);
            }
            ClusterEvent::SliceRemoved(name) => {
                let changes = self.routing.slice_removed(name, now);
                self.read.delivered(Fact::Slice(name.clone(), None), now);
                self.changed(&changes, now, journal);
            }
            ClusterEvent::ServicesListed(services) => {
                let changes = self.routing.services_listed(services.clone(), now);
                self.read.start_anew();
                self.policies_changed(&changes, now, journal);
            }
            ClusterEvent::ServiceWritten(service) => {
                let changes = self.routing.service_written(service.clone(), now);
                self.read.delivered(Fact::Service(service.name.clone(), Some(service.version.clone())), now);
                self.policies_changed(&changes, now, journal);
            }
            ClusterEvent::ServiceRemoved(name) => {
                let changes = self.routing.service_removed(name.clone(), now);
                self.read.delivered(Fact::Service(name.clone(), None), now);
                self.policies_changed(&changes, now, journal);
            }
            ClusterEvent::ServicesUnreadable(why) => {
                self.routing.services_unreadable(why.clone());
                self.summary = Summary::of(&self.routing);
            }
            ClusterEvent::NodesListed(nodes) => {
                if let Nodes::Listed(before) = &self.nodes {
                    self.read.nodes_told(before);
                }
                self.read.nodes_told(nodes.iter().map(|node| &node.name));
                self.nodes_listed(nodes, &BTreeSet::new());
            }
            ClusterEvent::NodesUnreadable(why) => {
                if matches!(self.nodes, Nodes::Awaited | Nodes::Unreadable(_)) {
                    self.nodes = Nodes::Unreadable(why.clone());
                    self.take_the_fence_s_nodes();
                }
            }
            ClusterEvent::NodeAdded(node) => self.node_added(node),
            ClusterEvent::NodeRemoved(name) => self.node_removed(name),
            ClusterEvent::Health(report) => self.confirmations.health(report),
            ClusterEvent::LocalEndpoints(report) => self.balancers.answered(report),
            ClusterEvent::Fence(_)
            | ClusterEvent::FenceNodes { .. }
            | ClusterEvent::FenceReach { .. }
            | ClusterEvent::FenceAnswers
            | ClusterEvent::FenceFails(_) => self.fence_says(event, now, journal),
            ClusterEvent::AttemptThrough { node, family, at } => {
                // C14. What it was confirmed by no longer counts, and it is pending again.
                if self.confirmations.contradicted(node, *family, *at).is_some() {
                    journal.record(now, Transition::Contradicted(node.clone(), *family));
                }
            }
            ClusterEvent::ConsistentRead(id, outcome) => {
                if let ReadOutcome::Shows(snapshot) = outcome
                    && let Some(nodes) = &snapshot.nodes
                    && let Some(told_since) = self.read.nodes_told_since(*id).cloned()
                {
                    self.nodes_listed(nodes, &told_since);
                }
                self.read.answered(*id, outcome, &self.routing, self.settings.poll_timeout, now);
                match outcome {
                    ReadOutcome::Forbidden(why) => journal.record(now, Transition::ReadForbidden(why.clone())),
                    ReadOutcome::Shows(_) if self.read.covers(self.evidence_at).is_some() => {
                        journal.record(now, Transition::ReadAgrees);
                    }
                    ReadOutcome::Shows(_) | ReadOutcome::Failed(_) => {}
                }
            }
        }
        let after = self.tallies();
        if before != after {
            self.evidence_at = now;
            let pending = |tallies: &ByFamily<Tally>| tallies.v4.pending + tallies.v6.pending;
            if pending(&before) > 0 && pending(&after) == 0 {
                journal.record(now, Transition::NodesSettled);
            }
        }
        self.judge(now);
    }

    fn judge(&mut self, now: Monotonic) {
        self.withdrawn = self.is_withdrawn();
        self.withdrawn_at = self.withdrawn.then(|| self.withdrawn_at.unwrap_or(now));
    }

    /// Takes in what only time brings.
    pub(super) fn expire(&mut self, now: Monotonic, journal: &mut Journal) {
        if self.read.expire(now) {
            // The agent's own watch is behind by more than it may be: whatever it hid counts as a change (C9, C10).
            for family in Family::ALL {
                self.confirmations.relevant_change(family, now);
            }
            let services = self.routing.routes().map(|route| route.service.clone()).collect();
            self.follow_load_balancers(&services, now);
            self.evidence_at = now;
            self.judge(now);
            journal.record(now, Transition::WatchBehind);
        }
    }

    /// What is to be asked now. `read_wanted` is from when on a consistent read is of use, by what else holds the end.
    pub(super) fn ask(&mut self, read_wanted: Option<Monotonic>, asked: &mut Asked, now: Monotonic) -> Option<Ask> {
        if self.fence_due().is_some_and(|due| due <= now) {
            let request = asked.fence();
            self.confirmations.fence_requested(request, now);
            return Some(Ask::Fence(request));
        }
        if self.read_due(read_wanted).is_some_and(|due| due <= now) {
            let id = asked.read();
            self.read.ask(id, &self.routing, now);
            return Some(Ask::Read(id));
        }
        None
    }

    /// When [`expire`](Self::expire), or [`ask`](Self::ask) for the fence, is next due, if nothing comes before.
    pub(super) fn due(&self) -> Option<Monotonic> {
        [self.fence_due(), self.read.expires()].into_iter().flatten().min()
    }

    /// C4. While somebody routes to the pod there is a relevant change to come, which would void whatever the fence shows.
    fn fence_due(&self) -> Option<Monotonic> {
        if !self.is_unrouted() || self.summary.families.is_empty() {
            return None;
        }
        let due = || Family::ALL.into_iter().filter_map(|family| self.confirmations.fence_due(family)).min();
        self.settings.fence.then(due).flatten()
    }

    /// C9: when a read is to begin; `None` while none is wanted, or one is under way that will do.
    pub(super) fn read_due(&self, read_wanted: Option<Monotonic>) -> Option<Monotonic> {
        let wanted = read_wanted.filter(|_| self.withdrawn)?;
        self.read.due(self.evidence_at, self.fresh()).map(|due| due.max(wanted))
    }

    /// For how long a read counts: the watch may have died since.
    fn fresh(&self) -> Duration {
        self.settings.bounds.watch_lag + self.settings.poll_timeout
    }

    /// What is known of the nodes' operating systems, for the next drain (C12).
    pub(super) fn status_given(&self) -> StatusGiven {
        self.confirmations.status_given()
    }

    /// S5: whether a slice lists the pod as terminating.
    pub(super) fn lists_the_pod_terminating(&self) -> bool {
        self.summary.terminating
    }

    /// Every Service that lists the pod is withdrawn, as far as slices and Services say.
    pub(super) fn is_unrouted(&self) -> bool {
        self.summary.unrouted
    }

    /// E5 but for the consistent read: every Service that lists the pod is withdrawn, and no node is pending.
    fn is_withdrawn(&self) -> bool {
        let nodes = match &self.nodes {
            Nodes::Awaited => false,
            // A fence that has ever answered is awaited: that it does not is a fault.
            Nodes::Unreadable(_) => !(self.settings.fence && self.status_given().has_fence()),
            Nodes::Listed(nodes) => self.are_too_many(nodes) || self.are_complete(),
            // A node that joins later starts its kube-proxy later, and that lists no older than the change (C11).
            Nodes::ByFence(_, as_of) => {
                let (_, last) = self.last_change();
                last.is_some_and(|last| *as_of >= last + self.settings.bounds.watch_lag) && self.are_complete()
            }
        };
        nodes && self.is_unrouted()
    }

    fn are_complete(&self) -> bool {
        self.summary.families.iter().all(|family| self.confirmations.complete(*family))
    }

    /// Above `routing.maxNodes` nobody asks the nodes, unless a fence does: nothing is claimed of them, and none awaited.
    fn are_too_many(&self, nodes: &BTreeSet<NodeName>) -> bool {
        let fenced = self.settings.fence && self.status_given().has_fence();
        !fenced && nodes.len() as u64 > self.settings.max_nodes
    }

    fn changed(&mut self, changes: &Changes, now: Monotonic, journal: &mut Journal) {
        self.summary = Summary::of(&self.routing);
        for family in &changes.relevant {
            self.confirmations.relevant_change(*family, now);
            journal.record(now, Transition::RelevantChange(*family));
        }
        for Turn { service, port, family, state } in &changes.turns {
            let (service, port) = (service.clone(), port.name.clone());
            let turn = if state.is_routed() { Transition::Routed } else { Transition::Withdrawn };
            journal.record(now, turn(service, port, *family));
        }
        if !changes.relevant.is_empty() || !changes.turns.is_empty() {
            self.evidence_at = now;
        }
        self.follow_load_balancers(&changes.services, now);
    }

    fn policies_changed(&mut self, changes: &Changes, now: Monotonic, journal: &mut Journal) {
        if !changes.relevant.is_empty() && changes.relevant.iter().any(|family| self.policy_moved(*family, now)) {
            self.confirmations.policy_change(now);
            self.evidence_at = now;
        }
        self.changed(changes, now, journal);
    }

    fn policy_moved(&self, family: Family, now: Monotonic) -> bool {
        self.routing.last_policy_change(family) == Some(now)
    }

    /// E6. A gap may have hidden that a Service routed to the pod again, and no longer: that is another withdrawal.
    fn follow_load_balancers(&mut self, changed: &BTreeSet<ServiceName>, now: Monotonic) {
        let with_port: BTreeSet<ServiceName> = self.routing.health_check_node_ports().into_keys().cloned().collect();
        let added: BTreeSet<ServiceName> =
            with_port.into_iter().filter(|service| self.balancers.added(service.clone())).collect();
        // One that has lost its port too: its load balancer finds this node failing no sooner for that.
        let followed: Vec<ServiceName> = self.balancers.services().cloned().collect();
        for service in followed {
            if changed.contains(&service) || added.contains(&service) {
                let routed = self.routing.routes().any(|route| *route.service == service && route.state.is_routed());
                if routed { self.balancers.routed(&service) } else { self.balancers.withdrawn(&service, now) }
            }
        }
    }

    fn tallies(&self) -> ByFamily<Tally> {
        ByFamily { v4: self.confirmations.tally(Family::V4), v6: self.confirmations.tally(Family::V6) }
    }
}

impl Summary {
    fn of(routing: &Routing) -> Self {
        Self {
            unrouted: routing.known() && !routing.routes().any(|route| route.state.is_routed()),
            families: routing.families(),
            terminating: routing.lists_the_pod_terminating(),
        }
    }
}
