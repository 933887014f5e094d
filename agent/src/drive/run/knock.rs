//! Who sends SYNs while a drain runs: between the core, the sensor and the list of nodes.

use std::sync::Arc;

use super::Agent;
use crate::{
    core::{
        event::{Event, Evidence},
        verdict::Verdict,
    },
    drive::{clock, cluster::Cluster},
};

impl Agent {
    /// C14: what the sources say of nodes, as of a reading.
    pub(super) fn knock(&mut self, evidence: &Evidence) -> Vec<Event> {
        let cluster = self.cluster.as_ref();
        let places = cluster.map(Cluster::places).unwrap_or_default();
        let through = self.knockers.after(evidence, places, &mut self.reader, clock::now());
        let Some(observation) = cluster.and_then(Cluster::observation) else { return Vec::new() };
        through.into_iter().map(|event| Event::Cluster(observation, Arc::new(event))).collect()
    }

    /// Begins to keep sources with a drain, and ends with it.
    pub(super) fn follow_sources(&mut self) {
        self.knockers.follow(&self.core, &mut self.reader, clock::now());
    }

    pub(super) fn with_sources(&self, verdict: Verdict) -> Verdict {
        Verdict { sources: self.knockers.last().cloned(), ..verdict }
    }
}
