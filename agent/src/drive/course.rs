//! What is kept of a drain for people, between the loop and the recorder.

use crate::{
    config::Config,
    core::{clock::Monotonic, drain::Core, event::Evidence, settings::Settings},
    drive::{evidence::Reader, look},
    report::{Recorder, course::Pod},
};

/// Keeps the course of the drain under way. `settings` are what the core decides by, to say what it waits for.
pub(super) struct Course {
    pub(super) recorder: Recorder,
    pub(super) settings: Settings,
}

impl Course {
    /// Nothing is kept yet.
    pub(super) fn new(config: &Config, settings: Settings) -> Self {
        Self { recorder: Recorder::new(Pod::of(config)), settings }
    }

    /// Follows the core: what holds the drain under way, and how the nodes stand.
    pub(super) fn follow(&mut self, core: &Core, now: Monotonic) {
        if let (Some(span), Some(view)) = (core.drain_span(), core.drain_view(now)) {
            self.recorder.holding(span.started, &view.holding, now);
            self.recorder.nodes(look::nodes(core.node_tally()), now);
        }
    }

    /// Takes in what a reading counted.
    pub(super) fn read(&mut self, evidence: &Evidence) {
        self.recorder.sample(&evidence.attempts, evidence.asked_families(), evidence.taken_at);
    }

    /// Samples the counts alone, between readings: they show when attempts came, and decide nothing.
    pub(super) fn sample(&mut self, core: &Core, reader: &Reader, now: Monotonic) {
        let families = core.evidence().into_iter().flat_map(Evidence::asked_families);
        match reader.sensor().totals() {
            Some(totals) => self.recorder.sample(&totals, families, now),
            // Readings are all there is.
            None => self.recorder.sample(&std::collections::BTreeMap::new(), families, now),
        }
    }
}
