//! The metrics, in the OpenMetrics text format. What the kernel counts is taken over when somebody asks.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};

use crate::{
    core::{class::Class, cluster::ClusterEvent, listener::Port, verdict::Verdict},
    drive::Look,
    server::status::State,
};

/// The media type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of the drain histogram's buckets, in seconds: around the default quiet period and bound.
const DRAIN_BUCKETS: [f64; 11] = [1.0, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 20.0, 30.0];

mod cluster;

type GaugeF64 = Gauge<f64, AtomicU64>;

/// All metrics.
pub struct Metrics {
    registry: Registry,
    attempts: Family<AttemptLabels, Counter>,
    last_attempt_age: Family<ListenerLabels, GaugeF64>,
    accept_queue: Family<PortLabels, Gauge>,
    drain_state: Family<StateLabels, Gauge>,
    drains: Family<ReasonLabels, Counter>,
    drain_duration: Histogram,
    late: Family<OutcomeLabels, Gauge>,
    late_observed: Gauge<f64, AtomicU64>,
    sensor: Family<StrategyLabels, Gauge>,
    sensor_healthy: Gauge,
    sensor_blind: GaugeF64,
    cluster: cluster::ClusterMetrics,
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
        let mut registry = Registry::with_prefix("lastsyn");
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
        let drain_state = Family::default();
        registry.register("drain_state", "1 for what the agent is doing, 0 for the others", drain_state.clone());
        let drains = Family::default();
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
        let cluster = cluster::ClusterMetrics::new(&mut registry);
        registry.register("build", "The agent's version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self {
            registry,
            attempts,
            last_attempt_age,
            accept_queue,
            drain_state,
            drains,
            drain_duration,
            late,
            late_observed,
            sensor,
            sensor_healthy,
            sensor_blind,
            cluster,
        }
    }

    /// The cluster has said something.
    pub fn cluster_said(&self, event: &ClusterEvent) {
        self.cluster.said(event);
    }

    /// A drain has ended.
    pub fn drain_ended(&self, verdict: &Verdict) {
        self.drains.get_or_create(&ReasonLabels { reason: verdict.reason.name() }).inc();
        self.drain_duration.observe(seconds(verdict.duration_ms));
        self.cluster.drain_ended(verdict);
    }

    /// Takes over what a look at the agent shows, and writes everything out.
    pub fn text(&self, look: &Look) -> String {
        self.take(look);
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
        for listener in &look.totals {
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
        for listener in &look.totals {
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

fn seconds(milliseconds: u64) -> f64 {
    std::time::Duration::from_millis(milliseconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::{
            confirm::Tally,
            listener::{Family as IpFamily, Port},
            verdict::{FamilyCounts, Listener, Strategy},
        },
        server::status::{SensorStatus, Status},
    };

    fn look(new: Option<u64>) -> Look {
        let sensor = SensorStatus {
            strategy: Strategy::Tcx,
            healthy: true,
            why: None,
            blind_ms: Some(2500),
            interfaces: Vec::new(),
            passed_over: Vec::new(),
            probes: crate::sensor::ProbeStatus::default(),
            scoped: true,
        };
        let counts = FamilyCounts {
            family: IpFamily::V6,
            new,
            retransmit: new.map(|new| new + 1),
            refused: new.map(|new| new + 2),
            join: new.map(|new| new + 3),
            opaque: new.map(|new| new + 4),
            stray: new.map(|new| new + 5),
            probe: None,
            ignored: new.map(|new| new + 6),
            late: None,
            last_attempt_ago_ms: Some(1500),
            quiet: false,
        };
        let listener = Listener { port: Port::try_from(80).unwrap(), closed_at_ms: None, families: vec![counts] };
        let status = Status {
            version: String::new(),
            uptime_ms: 0,
            state: State::Serving,
            sensor,
            listeners: Vec::new(),
            drain: None,
            sources: None,
            drains_ended: 0,
            verdict: None,
            journal: Vec::new(),
        };
        Look { status, totals: vec![listener], evidence: None, nodes: Tally::default(), left_out: 0 }
    }

    #[test]
    fn what_nothing_counts_has_no_sample() {
        let counted = Metrics::new().text(&look(Some(7)));
        let classes = ["new", "retransmit", "refused", "join", "opaque", "stray", "ignored"];
        for (count, class) in (7..).zip(classes) {
            let sample = format!("lastsyn_attempts_total{{port=\"80\",family=\"IPv6\",class=\"{class}\"}} {count}\n");
            assert!(counted.contains(&sample), "no {sample} in {counted}");
        }
        assert!(!counted.contains("probe"), "{counted}");
        let age = r#"lastsyn_last_attempt_age_seconds{port="80",family="IPv6"} 1.5"#;
        assert!(counted.contains(age), "{counted}");
        assert!(counted.contains("lastsyn_sensor_blind_seconds 2.5\n"), "{counted}");
        let uncounted = Metrics::new().text(&look(None));
        assert!(!uncounted.contains("lastsyn_attempts_total{"), "{uncounted}");
    }
}
