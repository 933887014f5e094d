//! What the cluster said.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::core::{
    cluster::{ClusterEvent, HealthOutcome},
    confirm::Tally,
    verdict::Verdict,
};

/// The metrics of routing.
pub(super) struct ClusterMetrics {
    events: Family<EventLabels, Counter>,
    polls: Family<PollLabels, Counter>,
    confirmations: Family<ConfirmationLabels, Counter>,
    nodes: Family<NodeLabels, Gauge>,
    left_out: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    resource: &'static str,
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PollLabels {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfirmationLabels {
    by: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    state: &'static str,
}

impl ClusterMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let events = Family::default();
        registry.register("watch_events", "Lists and changes that the API server sent, by resource", events.clone());
        let polls = Family::default();
        registry.register("healthz_polls", "Requests to nodes' health servers, by what came of them", polls.clone());
        let confirmations = Family::default();
        registry.register(
            "confirmations",
            "Nodes that a drain ended with, by what confirmed each",
            confirmations.clone(),
        );
        let nodes = Family::default();
        registry.register("nodes", "Nodes in the drain under way, per family, by what is known of them", nodes.clone());
        let left_out = Gauge::default();
        registry.register(
            "objects_unreadable",
            "Addresses and ports in the API server's objects that could not be read, and were left out",
            left_out.clone(),
        );
        Self { events, polls, confirmations, nodes, left_out }
    }

    /// Counts an event.
    pub(super) fn said(&self, event: &ClusterEvent) {
        let (resource, kind) = match event {
            ClusterEvent::SlicesListed(_) => ("endpointslices", "listed"),
            ClusterEvent::SliceWritten(_) => ("endpointslices", "written"),
            ClusterEvent::SliceRemoved(_) => ("endpointslices", "removed"),
            ClusterEvent::SlicesUnreadable(_) => ("endpointslices", "unreadable"),
            ClusterEvent::ServicesListed(_) => ("services", "listed"),
            ClusterEvent::ServiceWritten(_) => ("services", "written"),
            ClusterEvent::ServiceRemoved(_) => ("services", "removed"),
            ClusterEvent::ServicesUnreadable(_) => ("services", "unreadable"),
            ClusterEvent::NodesListed(_) => ("nodes", "listed"),
            ClusterEvent::NodeAdded(_) => ("nodes", "written"),
            ClusterEvent::NodeRemoved(_) => ("nodes", "removed"),
            ClusterEvent::NodesUnreadable(_) => ("nodes", "unreadable"),
            ClusterEvent::ConsistentRead(..) => ("all", "read"),
            ClusterEvent::Health(report) => {
                self.polls.get_or_create(&PollLabels { result: result(&report.outcome) }).inc();
                return;
            }
            ClusterEvent::PodPaths(_)
            | ClusterEvent::LocalEndpoints(_)
            | ClusterEvent::Fence(_)
            | ClusterEvent::FenceNodes { .. }
            | ClusterEvent::FenceReach { .. }
            | ClusterEvent::FenceAnswers
            | ClusterEvent::FenceFails(_)
            | ClusterEvent::AttemptThrough { .. } => return,
        };
        self.events.get_or_create(&EventLabels { resource, r#type: kind }).inc();
    }

    /// A drain has ended.
    pub(super) fn drain_ended(&self, verdict: &Verdict) {
        for evidence in verdict.routing.iter().flat_map(|routing| &routing.evidence) {
            self.confirmations.get_or_create(&ConfirmationLabels { by: evidence.by.clone() }).inc();
        }
    }

    /// Takes over what is known of the nodes.
    pub(super) fn take(&self, nodes: Tally, left_out: u64) {
        for (state, count) in [
            ("confirmed", nodes.confirmed),
            ("assumed", nodes.assumed),
            ("waited", nodes.waited),
            ("pending", nodes.pending),
            ("unobservable", nodes.unobservable),
        ] {
            self.nodes.get_or_create(&NodeLabels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.left_out.set(i64::try_from(left_out).unwrap_or(i64::MAX));
    }
}

fn result(outcome: &HealthOutcome) -> &'static str {
    match outcome {
        HealthOutcome::Status(_) => "status",
        HealthOutcome::NoStatus(_) => "noStatus",
        HealthOutcome::Refused => "refused",
        HealthOutcome::TimedOut => "timedOut",
        HealthOutcome::Broken => "broken",
    }
}
