//! The counts at the hook's call: a verdict tells what came since.

use std::collections::BTreeMap;

use super::{
    class::Class,
    clock::Monotonic,
    event::{Attempts, ByFamily, Evidence, Tally},
    listener::{Family, Port},
};

/// What had been counted when the drain began.
#[derive(Clone, Debug, Default)]
pub(super) struct CountsBefore {
    ports: BTreeMap<Port, ByFamily<Attempts>>,
    unattributed: ByFamily<Tally>,
}

/// What has been counted since, by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CountsSince([u64; Class::ALL.len()]);

impl CountsSince {
    /// How many of a class: of `Opaque`, those that could not be parsed as far as their port are among them.
    pub(super) fn get(&self, class: Class) -> u64 {
        self.0.get(class as usize).copied().unwrap_or_default()
    }
}

impl CountsBefore {
    /// All that a reading shows.
    pub(super) fn of(evidence: &Evidence) -> Self {
        Self {
            ports: evidence.attempts.iter().map(|(port, attempts)| (*port, attempts.families)).collect(),
            unattributed: evidence.unattributed,
        }
    }

    /// From the drain's first reading, for every port that is counted: one that is not watched now may be, later on.
    pub(super) fn at(started: Monotonic, evidence: &Evidence) -> Self {
        // The reading came a little after the call. What came in between belongs to the drain: how many they were is not
        // known, but that the last one was among them is.
        let before = |tally: Tally| Tally {
            count: tally.count.saturating_sub(u64::from(tally.last >= Some(started))),
            last: tally.last,
        };
        let of = |attempts: &Attempts| Attempts::of(|class| before(attempts.get(class)));
        Self {
            ports: evidence
                .attempts
                .iter()
                .map(|(port, attempts)| {
                    let ByFamily { v4, v6 } = &attempts.families;
                    (*port, ByFamily { v4: of(v4), v6: of(v6) })
                })
                .collect(),
            unattributed: ByFamily { v4: before(evidence.unattributed.v4), v6: before(evidence.unattributed.v6) },
        }
    }

    /// What could not be parsed as far as its port since, over one family.
    pub(super) fn unattributed_since(&self, family: Family, evidence: &Evidence) -> u64 {
        grown(*evidence.unattributed.get(family), *self.unattributed.get(family))
    }

    /// What one listener and family got since; `None` where nothing counts it.
    pub(super) fn since(&self, port: Port, family: Family, evidence: &Evidence) -> Option<CountsSince> {
        let now = evidence.attempts.get(&port)?.families.get(family);
        let before = self.ports.get(&port).map(|families| *families.get(family)).unwrap_or_default();
        let unattributed = self.unattributed_since(family, evidence);
        Some(CountsSince(Class::ALL.map(|class| {
            let grown = grown(now.get(class), before.get(class));
            if class == Class::Opaque { grown.saturating_add(unattributed) } else { grown }
        })))
    }
}

fn grown(now: Tally, before: Tally) -> u64 {
    now.count.saturating_sub(before.count)
}
