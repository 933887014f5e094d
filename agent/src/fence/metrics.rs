//! The fence's metrics, in the OpenMetrics text format.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use super::{
    desk::Refused,
    rounds::{Reach, Rounds},
};
use crate::core::listener;

/// Upper bounds of the buckets, in seconds: around one and two of kube-proxy's `minSyncPeriod`.
const BUCKETS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0];

/// How many nodes are named.
const LATE: usize = 10;

/// Why a question is not taken.
const REFUSALS: [&str; 5] = ["question", "too-many", "caller", "elsewhere", "unable"];

/// All metrics.
pub(super) struct Metrics {
    registry: Registry,
    questions: Counter,
    refusals: Family<RefusalLabels, Counter>,
    answers_under_way: Gauge,
    answer: Histogram,
    marker: Family<FamilyLabels, Histogram, fn() -> Histogram>,
    nodes: Family<NodesLabels, Gauge>,
    late: Family<NodeLabels, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FamilyLabels {
    family: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodesLabels {
    family: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
    family: &'static str,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("lastsyn_fence");
        let questions = Counter::default();
        registry.register("questions", "Questions of agents that were taken", questions.clone());
        // Every label from the start: a rate on what has not happened yet needs its 0.
        let refusals = Family::<RefusalLabels, Counter>::default();
        for reason in REFUSALS {
            drop(refusals.get_or_create(&RefusalLabels { reason }));
        }
        registry.register("refusals", "Questions that were not, by why", refusals.clone());
        let answers_under_way = Gauge::default();
        registry.register("answers_under_way", "Answers under way", answers_under_way.clone());
        let answer = Histogram::new(BUCKETS);
        let words = "From a question to the confirmation of the last node";
        registry.register_with_unit("answer", words, Unit::Seconds, answer.clone());
        let marker: Family<FamilyLabels, Histogram, fn() -> Histogram> = Family::new_with_constructor(buckets);
        for family in listener::Family::ALL {
            drop(marker.get_or_create(&FamilyLabels { family: family.name() }));
        }
        let words = "From a marker's write to its effect at a node";
        registry.register_with_unit("marker", words, Unit::Seconds, marker.clone());
        let nodes = Family::default();
        registry.register("nodes", "Nodes while somebody asks, by what they show", nodes.clone());
        let late = Family::default();
        let words = "The nodes that took longest to show their last marker, and how long that was";
        registry.register_with_unit("slowest_nodes", words, Unit::Seconds, late.clone());
        registry.register("build", "The fence's version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self { registry, questions, refusals, answers_under_way, answer, marker, nodes, late }
    }

    pub(super) fn asked(&self) {
        self.questions.inc();
    }

    pub(super) fn refused(&self, refused: &Refused) {
        let reason = match refused {
            Refused::FirstList { .. } | Refused::Families => "question",
            Refused::TooMany(_) => "too-many",
            Refused::Caller(_) => "caller",
            Refused::Elsewhere { .. } => "elsewhere",
            Refused::Unable(_) => "unable",
        };
        self.refusals.get_or_create(&RefusalLabels { reason }).inc();
    }

    pub(super) fn answered(&self, took: Duration) {
        self.answer.observe(took.as_secs_f64());
    }

    pub(super) fn showed(&self, family: listener::Family, took: Duration) {
        self.marker.get_or_create(&FamilyLabels { family: family.name() }).observe(took.as_secs_f64());
    }

    /// Takes over how the nodes stand.
    pub(super) fn state(&self, rounds: &Rounds, under_way: u32) {
        self.answers_under_way.set(under_way.into());
        for family in listener::Family::ALL {
            let mut counts = [("shows", 0), ("late", 0), ("silent", 0), ("stranger", 0)];
            for looked in rounds.looks(family) {
                let index = match looked.reach {
                    Reach::Silent(_) => 2,
                    Reach::Stranger(_) => 3,
                    Reach::Answers | Reach::Unknown => usize::from(!looked.shows),
                };
                if let Some((_, count)) = counts.get_mut(index) {
                    *count += 1;
                }
            }
            for (state, count) in counts {
                self.nodes.get_or_create(&NodesLabels { family: family.name(), state }).set(count);
            }
        }
    }

    /// Writes everything out.
    pub(super) fn text(&self, slowest: Vec<(String, listener::Family, Duration)>) -> String {
        self.late.clear();
        let mut slowest = slowest;
        slowest.sort_by_key(|(_, _, took)| std::cmp::Reverse(*took));
        for (node, family, took) in slowest.into_iter().take(LATE) {
            let labels = NodeLabels { node, family: family.name() };
            self.late.get_or_create(&labels).set(took.as_secs_f64());
        }
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a string does not fail; half an answer would be read as a whole one.
            Err(std::fmt::Error) => String::new(),
        }
    }
}

fn buckets() -> Histogram {
    Histogram::new(BUCKETS)
}
