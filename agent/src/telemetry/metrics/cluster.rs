//! What the cluster said.

use std::sync::{Mutex, PoisonError};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::watch_lag::WatchLag;
use crate::core::{
    clock::Monotonic,
    cluster::{ClusterEvent, HealthOutcome},
    confirm::Tally,
    verdict::Verdict,
};

/// Upper bounds of a poll's buckets, in seconds: up to `routing.poll.timeout`.
const BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.0];

/// Upper bounds of the buckets of what the watch is behind by, in seconds: nothing at all, and up to `routing.poll.timeout`.
const LAG_BUCKETS: [f64; 9] = [0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0];

/// What came of a poll.
const RESULTS: [&str; 5] = ["status", "noStatus", "refused", "timedOut", "broken"];

/// The kinds of evidence (C13).
const KINDS: [&str; 4] = ["fence", "syncs", "settled", "waited"];

/// The kinds that can be contradicted (C14): by the fence, or by what rests on a bound.
const CONTRADICTED: [&str; 2] = ["fence", "assumed"];

/// What the API server sends: what of it, and what that was.
const EVENTS: [(&str, [&str; 4]); 3] = [("endpointslices", WATCHED), ("services", WATCHED), ("nodes", WATCHED)];
const WATCHED: [&str; 4] = ["listed", "written", "removed", "unreadable"];

/// The metrics of routing.
pub(super) struct ClusterMetrics {
    events: Family<EventLabels, Counter>,
    polls: Family<PollLabels, Counter>,
    poll: Histogram,
    lag: Histogram,
    behind_by: Mutex<WatchLag>,
    confirmations: Family<ConfirmationLabels, Counter>,
    contradicted: Family<ConfirmationLabels, Counter>,
    behind: Counter,
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
        // Every label from the start: a rate on what has not happened yet needs its 0.
        let events = Family::<EventLabels, Counter>::default();
        for (resource, kinds) in EVENTS {
            for kind in kinds {
                drop(events.get_or_create(&EventLabels { resource, r#type: kind }));
            }
        }
        drop(events.get_or_create(&EventLabels { resource: "all", r#type: "read" }));
        registry.register("watch_events", "Lists and changes that the API server sent, by resource", events.clone());
        let polls = Family::<PollLabels, Counter>::default();
        for result in RESULTS {
            drop(polls.get_or_create(&PollLabels { result }));
        }
        registry.register("healthz_polls", "Requests to nodes' health servers, by what came of them", polls.clone());
        let poll = Histogram::new(BUCKETS);
        let words = "From a request to a node's health server to its answer, where there was one";
        registry.register_with_unit("healthz_poll_duration", words, Unit::Seconds, poll.clone());
        let lag = Histogram::new(LAG_BUCKETS);
        let words = "By how much the watch was behind a consistent read, from the read's answer on";
        registry.register_with_unit("watch_lag", words, Unit::Seconds, lag.clone());
        let confirmations = by(&KINDS);
        registry.register(
            "confirmations",
            "Nodes that a drain ended with, by what confirmed each",
            confirmations.clone(),
        );
        let contradicted = by(&CONTRADICTED);
        registry.register(
            "confirmations_contradicted",
            "Confirmed nodes that a new connection came through after that: they are awaited again",
            contradicted.clone(),
        );
        let behind = Counter::default();
        registry.register(
            "watch_behind",
            "Consistent reads that showed what the watch had not delivered in time",
            behind.clone(),
        );
        let nodes = Family::default();
        registry.register("nodes", "Nodes in the drain under way, per family, by what is known of them", nodes.clone());
        let left_out = Gauge::default();
        registry.register(
            "objects_unreadable",
            "Addresses and ports in the API server's objects that could not be read, and were left out",
            left_out.clone(),
        );
        Self {
            events,
            polls,
            poll,
            lag,
            behind_by: Mutex::default(),
            confirmations,
            contradicted,
            behind,
            nodes,
            left_out,
        }
    }

    /// Counts an event.
    pub(super) fn said(&self, event: &ClusterEvent, now: Monotonic) {
        let lag = self.behind_by.lock().unwrap_or_else(PoisonError::into_inner).said(event, now);
        if let Some(lag) = lag {
            self.lag.observe(lag.as_secs_f64());
        }
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
                if matches!(report.outcome, HealthOutcome::Status(_) | HealthOutcome::NoStatus(_)) {
                    self.poll.observe(report.received_at.since(report.sent_at).as_secs_f64());
                }
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

    /// C14: counts a contradiction, by what kind of confirmation is one fewer. The two that rest on a bound are one kind here.
    pub(super) fn attempt_through(&self, before: Tally, after: Tally) {
        let pairs = [(before.confirmed, after.confirmed), (before.assumed, after.assumed)];
        for (by, (before, after)) in CONTRADICTED.into_iter().zip(pairs) {
            if after < before {
                self.contradicted.get_or_create(&ConfirmationLabels { by: by.to_owned() }).inc_by(before - after);
            }
        }
    }

    pub(super) fn watch_was_behind(&self) {
        self.behind.inc();
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

/// A counter for each kind, at 0.
fn by(kinds: &[&str]) -> Family<ConfirmationLabels, Counter> {
    let family = Family::<ConfirmationLabels, Counter>::default();
    for kind in kinds {
        drop(family.get_or_create(&ConfirmationLabels { by: (*kind).to_owned() }));
    }
    family
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
