//! What a step did to routing, and when it last mattered.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{clock::Monotonic, cluster::ServiceName, listener::Family},
    State,
    backends::Step,
    listing::ServicePort,
};

/// What one event did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The families for which it was a relevant change: what was confirmed of them is void (C10).
    pub relevant: BTreeSet<Family>,
    /// The Services for which it was one: a version that the watch has not shown may have routed to the pod in between.
    pub services: BTreeSet<ServiceName>,
    /// What is routed or withdrawn now and was not before, for the journal.
    pub turns: Vec<Turn>,
}

/// A Service port and family that was routed, withdrawn or unheard of, and now is in another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The Service.
    pub service: ServiceName,
    /// Its port.
    pub port: ServicePort,
    /// The family.
    pub family: Family,
    /// What it is now.
    pub state: State,
}

/// When routing last changed, of each family.
#[derive(Clone, Debug, Default)]
pub(super) struct LastChanges(BTreeMap<Family, LastChange>);

#[derive(Clone, Copy, Debug, Default)]
struct LastChange {
    generation: u64,
    relevant: Option<Monotonic>,
    policy: Option<Monotonic>,
}

// === impl Changes ===

impl Changes {
    pub(super) fn add(&mut self, service: &ServiceName, family: Family, step: Step) {
        if step.relevant {
            self.relevant.insert(family);
            self.services.insert(service.clone());
        }
        let turn = |(port, state)| Turn { service: service.clone(), port, family, state };
        self.turns.extend(step.turned.into_iter().map(turn));
    }
}

// === impl LastChanges ===

impl LastChanges {
    pub(super) fn note(&mut self, changes: &Changes, at: Monotonic) {
        for family in &changes.relevant {
            let last = self.0.entry(*family).or_default();
            last.generation = last.generation.saturating_add(1);
            last.relevant = Some(at);
        }
    }

    pub(super) fn note_policy(&mut self, changes: &Changes, at: Monotonic) {
        for family in &changes.relevant {
            self.0.entry(*family).or_default().policy = Some(at);
        }
    }

    pub(super) fn relevant(&self, family: Family) -> Option<Monotonic> {
        self.0.get(&family)?.relevant
    }

    pub(super) fn policy(&self, family: Family) -> Option<Monotonic> {
        self.0.get(&family)?.policy
    }

    pub(super) fn generation(&self, family: Family) -> u64 {
        self.0.get(&family).map_or(0, |last| last.generation)
    }
}
