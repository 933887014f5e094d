//! What the agent costs the kernel: its readings, and the runs of its programs.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::sensor::ProgramRuns;

/// Upper bounds of the buckets, in seconds. A reading takes a millisecond; what is far above it waited for the kernel.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0];

/// The metrics of the kernel's evidence.
pub(super) struct KernelMetrics {
    reading: Histogram,
    maps: Family<PurposeLabels, Counter>,
    time: Family<ProgramLabels, Counter<f64, AtomicU64>>,
    runs: Family<ProgramLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PurposeLabels {
    purpose: &'static str,
}

/// What the sensor's counts are read for.
const DECISION: PurposeLabels = PurposeLabels { purpose: "decision" };
const REPORT: PurposeLabels = PurposeLabels { purpose: "report" };

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProgramLabels {
    program: String,
}

impl KernelMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let reading = Histogram::new(BUCKETS);
        let words = "How long readings of the kernel's evidence took: sensor, counters, socket table";
        registry.register_with_unit("reading_duration", words, Unit::Seconds, reading.clone());
        let maps = Family::<PurposeLabels, Counter>::default();
        for purpose in [DECISION, REPORT] {
            drop(maps.get_or_create(&purpose));
        }
        registry.register("map_reads", "How often the sensor's counts were read, by what for", maps.clone());
        let time = Family::default();
        let words = "How long the kernel ran a program of the sensor, in all, while it kept account";
        registry.register_with_unit("program_run", words, Unit::Seconds, time.clone());
        let runs = Family::default();
        let words = "How often the kernel ran a program of the sensor while it kept account";
        registry.register("program_runs", words, runs.clone());
        Self { reading, maps, time, runs }
    }

    pub(super) fn evidence_read(&self, took: Duration) {
        self.reading.observe(took.as_secs_f64());
        self.maps.get_or_create(&DECISION).inc();
    }

    pub(super) fn sampled(&self) {
        self.maps.get_or_create(&REPORT).inc();
    }

    /// Takes over the kernel's account.
    pub(super) fn take(&self, programs: &[ProgramRuns]) {
        for ProgramRuns { program, runs, time } in programs {
            let labels = ProgramLabels { program: program.clone() };
            self.runs.get_or_create(&labels).inner().store(*runs, Ordering::Relaxed);
            self.time.get_or_create(&labels).inner().store(time.as_secs_f64().to_bits(), Ordering::Relaxed);
        }
    }
}
