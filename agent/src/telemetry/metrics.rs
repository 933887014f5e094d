//! The metrics, in the OpenMetrics text format. What the kernel counts is taken over when somebody asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use lastsyn_common::counters::{FIRST_PORT_SLOT, SLOTS};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use crate::{
    core::{
        class::Class,
        clock::Monotonic,
        cluster::ClusterEvent,
        confirm::Tally,
        listener::{self, Port},
        verdict::{Listener, Reason, Verdict},
    },
    drive::Look,
    server::status::State,
    sockets::Census,
};

/// The media type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Every reason for which a drain can end.
const REASONS: [Reason; 6] =
    [Reason::RoutedAway, Reason::Synced, Reason::Quiet, Reason::Unverified, Reason::NotTerminating, Reason::Bound];

/// Upper bounds of the drain histogram's buckets, in seconds: around the default quiet period and bound.
const DRAIN_BUCKETS: [f64; 11] = [1.0, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 30.0];

/// How many listeners have samples: as many as the kernel's programs have room for. All others are counted as left out, so that a
/// pod with thousands of listeners does not become thousands of time series.
const MOST_LISTENERS: usize = (SLOTS - FIRST_PORT_SLOT as u32) as usize;

mod cluster;
mod connections;
mod kernel;
mod process;
mod state;
mod watch_lag;

pub use state::{StateRead, StateWrite};

type GaugeF64 = Gauge<f64, AtomicU64>;

/// All metrics.
pub struct Metrics {
    registry: Registry,
    attempts: Family<AttemptLabels, Counter>,
    last_attempt_age: Family<ListenerLabels, GaugeF64>,
    accept_queue: Family<PortLabels, Gauge>,
    left_out: Gauge,
    connections: connections::ConnectionMetrics,
    drain_state: Family<StateLabels, Gauge>,
    drains: Family<ReasonLabels, Counter>,
    drain_duration: Histogram,
    late: Family<OutcomeLabels, Gauge>,
    late_observed: Gauge<f64, AtomicU64>,
    sensor: Family<StrategyLabels, Gauge>,
    sensor_healthy: Gauge,
    sensor_blind: GaugeF64,
    kernel: kernel::KernelMetrics,
    process: process::ProcessMetrics,
    cluster: cluster::ClusterMetrics,
    state: state::StateMetrics,
}

/// `443`, or `443/udp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PortLabel(Port);

impl EncodeLabelValue for PortLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        write!(encoder, "{}", self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    port: PortLabel,
    family: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    port: PortLabel,
    family: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PortLabels {
    port: PortLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StrategyLabels {
    strategy: &'static str,
}

impl Metrics {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        let mut whole = Registry::default();
        let registry = whole.sub_registry_with_prefix("lastsyn");
        let attempts = Family::default();
        registry.register("attempts", "SYNs that reached a watched port, by class", attempts.clone());
        let last_attempt_age = Family::default();
        registry.register_with_unit(
            "last_attempt_age",
            "How long ago the last attempt came that counts",
            Unit::Seconds,
            last_attempt_age.clone(),
        );
        let accept_queue = Family::default();
        registry.register("accept_queue", "Connections that wait to be accepted", accept_queue.clone());
        let left_out = Gauge::default();
        registry.register("listeners_left_out", "Watched listeners that have no samples here", left_out.clone());
        let connections = connections::ConnectionMetrics::new(registry);
        let drain_state = Family::default();
        registry.register("drain_state", "1 for what the agent is doing, 0 for the others", drain_state.clone());
        // Every reason from the start: a rate or an alert on a reason that has not come yet needs its 0.
        let drains = Family::<ReasonLabels, Counter>::default();
        for reason in REASONS {
            drop(drains.get_or_create(&ReasonLabels { reason: reason.name() }));
        }
        registry.register("drains", "Drains that have ended, by reason", drains.clone());
        let drain_duration = Histogram::new(DRAIN_BUCKETS);
        registry.register_with_unit(
            "drain_duration",
            "From the hook's call to its answer",
            Unit::Seconds,
            drain_duration.clone(),
        );
        let late = Family::default();
        registry.register("late_attempts", "Attempts since the last drain's end, by what became of them", late.clone());
        let late_observed = GaugeF64::default();
        registry.register_with_unit(
            "late_observed",
            "For how long they were counted since the last listener closed",
            Unit::Seconds,
            late_observed.clone(),
        );
        let sensor = Family::default();
        registry.register("sensor_info", "1 for how SYNs are seen", sensor.clone());
        let sensor_healthy = Gauge::default();
        registry.register("sensor_healthy", "1 while the sensor is known to see every SYN", sensor_healthy.clone());
        let sensor_blind = GaugeF64::default();
        registry.register_with_unit(
            "sensor_blind",
            "For how long, in all, an interface may have been up and not watched",
            Unit::Seconds,
            sensor_blind.clone(),
        );
        let kernel = kernel::KernelMetrics::new(registry);
        let cluster = cluster::ClusterMetrics::new(registry);
        let state = state::StateMetrics::new(registry);
        registry.register("build", "The agent's version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let process = process::ProcessMetrics::new(&mut whole);
        Self {
            registry: whole,
            attempts,
            last_attempt_age,
            accept_queue,
            left_out,
            connections,
            drain_state,
            drains,
            drain_duration,
            late,
            late_observed,
            sensor,
            sensor_healthy,
            sensor_blind,
            kernel,
            process,
            cluster,
            state,
        }
    }

    /// The cluster has said something.
    pub fn cluster_said(&self, event: &ClusterEvent, now: Monotonic) {
        self.cluster.said(event, now);
    }

    /// C14: the core has taken in that a SYN came through a node; how the nodes stood before and after.
    pub fn attempt_through(&self, before: Tally, after: Tally) {
        self.cluster.attempt_through(before, after);
    }

    /// C9: a consistent read showed what the watch had not delivered.
    pub fn watch_was_behind(&self) {
        self.cluster.watch_was_behind();
    }

    /// The kernel's evidence was read, which took this long.
    pub fn evidence_read(&self, took: Duration) {
        self.kernel.evidence_read(took);
    }

    /// The sensor's counts were read once more, for a report's course alone.
    pub fn sampled(&self) {
        self.kernel.sampled();
    }

    /// The state file has been read.
    pub fn state_read(&self, result: StateRead) {
        self.state.read(result);
    }

    /// It has been written, or has not.
    pub fn state_written(&self, result: StateWrite) {
        self.state.written(result);
    }

    /// A drain has ended.
    pub fn drain_ended(&self, verdict: &Verdict) {
        self.drains.get_or_create(&ReasonLabels { reason: verdict.reason.name() }).inc();
        self.drain_duration.observe(seconds(verdict.duration_ms));
        self.cluster.drain_ended(verdict);
    }

    /// Takes over what a look at the agent shows, and how many connections there are where that could be read, and writes
    /// everything out.
    pub fn text(&self, look: &Look, census: Option<&BTreeMap<(Port, listener::Family), Census>>) -> String {
        self.take(look);
        self.connections.take(census, &shown_ports(look));
        self.kernel.take(&look.runs);
        self.process.take();
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a string does not fail; half an answer would be read as a whole one.
            Err(std::fmt::Error) => String::new(),
        }
    }

    fn take(&self, look: &Look) {
        self.cluster.take(look.nodes, look.left_out);
        self.last_attempt_age.clear();
        let shown = shown(look);
        self.left_out.set(i64::try_from(look.totals.len() - shown.len()).unwrap_or(i64::MAX));
        for listener in &shown {
            for counts in &listener.families {
                let (port, family) = (PortLabel(listener.port), counts.family.name());
                for class in Class::ALL {
                    // No sample rather than a 0 that nobody counted.
                    let Some(count) = counts.count(class) else { continue };
                    let labels = AttemptLabels { port, family, class: class.name() };
                    let counter = self.attempts.get_or_create_owned(&labels);
                    counter.inner().store(count, Ordering::Relaxed);
                }
                if let Some(age) = counts.last_attempt_ago_ms {
                    self.last_attempt_age.get_or_create(&ListenerLabels { port, family }).set(seconds(age));
                }
            }
        }
        self.accept_queue.clear();
        let sockets = look.evidence.as_ref().and_then(|evidence| evidence.sockets.as_ref().ok());
        for listener in &shown {
            if let Some(queue) = sockets.and_then(|sockets| sockets.listeners.get(&listener.port)) {
                let labels = PortLabels { port: PortLabel(listener.port) };
                self.accept_queue.get_or_create(&labels).set(i64::try_from(*queue).unwrap_or(i64::MAX));
            }
        }
        for state in State::ALL {
            let current = i64::from(state == look.status.state);
            self.drain_state.get_or_create(&StateLabels { state: state.name() }).set(current);
        }
        self.late.clear();
        // No sample before a drain has ended.
        if let Some(late) = look.status.verdict.as_ref().and_then(|verdict| verdict.late.as_ref()) {
            for (outcome, count) in [("taken", late.taken), ("refused", late.refused), ("opaque", late.opaque)] {
                let gauge = self.late.get_or_create_owned(&OutcomeLabels { outcome });
                gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
            }
            self.late_observed.set(seconds(late.observed_for_ms));
        }
        self.sensor.clear();
        self.sensor.get_or_create(&StrategyLabels { strategy: look.status.sensor.strategy.name() }).set(1);
        self.sensor_healthy.set(i64::from(look.status.sensor.healthy));
        self.sensor_blind.set(seconds(look.status.sensor.blind_ms.unwrap_or(0)));
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The ports of the listeners that have samples.
pub fn shown_ports(look: &Look) -> BTreeSet<Port> {
    shown(look).into_iter().map(|listener| listener.port).collect()
}

/// The listeners that have samples: those that are counted, then others while there is room.
fn shown(look: &Look) -> Vec<&Listener> {
    let counted = |listener: &&Listener| {
        look.evidence.as_ref().is_some_and(|evidence| evidence.attempts.contains_key(&listener.port))
    };
    let (counted, others): (Vec<_>, Vec<_>) = look.totals.iter().partition(counted);
    counted.into_iter().chain(others).take(MOST_LISTENERS).collect()
}

fn seconds(milliseconds: u64) -> f64 {
    Duration::from_millis(milliseconds).as_secs_f64()
}

#[cfg(test)]
mod tests;
