//! What came of the state file.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// What came of reading the state file at the agent's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateRead {
    /// Everything in it was taken over.
    Read,
    /// Some of its reports were of a version that cannot be read.
    Partly,
    /// There was none.
    Absent,
    /// It was cut short, or something else.
    Damaged,
    /// It was of a newer version.
    Newer,
    /// The file system did not give it.
    Failed,
}

/// What came of writing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateWrite {
    /// It is on the disk.
    Written,
    /// It is what it was before.
    Failed,
}

/// The metrics of the state file.
pub(super) struct StateMetrics {
    reads: Family<ResultLabels, Counter>,
    writes: Family<ResultLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

impl StateMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let reads = StateRead::ALL.map(StateRead::name);
        let reads = family(registry, "state_reads", "Readings of the state file, by what came of them", &reads);
        let writes = StateWrite::ALL.map(StateWrite::name);
        let writes = family(registry, "state_writes", "Writes of the state file, by what came of them", &writes);
        Self { reads, writes }
    }

    pub(super) fn read(&self, result: StateRead) {
        self.reads.get_or_create(&ResultLabels { result: result.name() }).inc();
    }

    pub(super) fn written(&self, result: StateWrite) {
        self.writes.get_or_create(&ResultLabels { result: result.name() }).inc();
    }
}

/// A counter for each result, at 0: a rate on what has not happened yet needs it.
fn family(registry: &mut Registry, name: &str, help: &str, results: &[&'static str]) -> Family<ResultLabels, Counter> {
    let family = Family::<ResultLabels, Counter>::default();
    for result in results {
        drop(family.get_or_create(&ResultLabels { result }));
    }
    registry.register(name, help, family.clone());
    family
}

impl StateRead {
    const ALL: [Self; 6] = [Self::Read, Self::Partly, Self::Absent, Self::Damaged, Self::Newer, Self::Failed];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Partly => "partly",
            Self::Absent => "absent",
            Self::Damaged => "damaged",
            Self::Newer => "newer",
            Self::Failed => "failed",
        }
    }
}

impl StateWrite {
    const ALL: [Self; 2] = [Self::Written, Self::Failed];

    fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Failed => "failed",
        }
    }
}
