//! S7: what comes after a drain's end. Whether the drain was long enough shows only then: a SYN that is refused now is a
//! client that was let down.

use super::{
    class::Class,
    clock::{Monotonic, millis},
    counts::CountsBefore,
    event::{Evidence, SensorState},
    listener::Family,
    verdict::{Late, Verdict},
    watched::Watched,
};

/// A drain that has ended, as far as what comes after it is concerned.
#[derive(Clone, Debug)]
pub(super) struct AfterEnd {
    ended_at: Monotonic,
    /// What its verdict tells of.
    before: CountsBefore,
    /// When it was first seen that none of the watched ports has a listener any more.
    closed_at: Option<Monotonic>,
}

impl AfterEnd {
    /// From the reading that the verdict was made of.
    pub(super) fn new(ended_at: Monotonic, evidence: &Evidence) -> Self {
        Self { ended_at, before: CountsBefore::of(evidence), closed_at: None }
    }

    /// Takes over what is open.
    pub(super) fn update(&mut self, evidence: &Evidence, watched: &Watched) {
        if evidence.sockets.is_err() || watched.any_open() {
            self.closed_at = None;
        } else if evidence.taken_at >= self.ended_at {
            self.closed_at = self.closed_at.or(Some(evidence.taken_at));
        }
    }

    /// When it was first seen that no listener is left; `None` while one is.
    pub(super) fn closed_at(&self) -> Option<Monotonic> {
        self.closed_at
    }

    /// The verdict with what came after it, as of this reading.
    pub(super) fn complete(&self, verdict: &Verdict, evidence: &Evidence) -> Verdict {
        let mut verdict = verdict.clone();
        let mut late = Late { observed_for_ms: self.observed_for_ms(evidence), ..Late::default() };
        let mut last = None;
        for family in Family::ALL {
            let hidden = self.before.unattributed_since(family, evidence);
            late.opaque = late.opaque.saturating_add(hidden);
            if hidden > 0 {
                last = last.max(evidence.unattributed.get(family).last);
            }
        }
        for listener in &mut verdict.listeners {
            for counts in &mut listener.families {
                let hidden = self.before.unattributed_since(counts.family, evidence);
                let Some(since) = self.before.since(listener.port, counts.family, evidence) else { continue };
                let taken = [Class::New, Class::Retransmit, Class::Join].map(|class| since.get(class)).iter().sum();
                let (refused, opaque) = (since.get(Class::Refused), since.get(Class::Opaque));
                counts.late = Some(refused.saturating_add(opaque).saturating_add(taken));
                late.taken = late.taken.saturating_add(taken);
                late.refused = late.refused.saturating_add(refused);
                late.opaque = late.opaque.saturating_add(opaque.saturating_sub(hidden));
                if counts.late > Some(hidden) {
                    let attempts = evidence.attempts.get(&listener.port);
                    last = last.max(attempts.and_then(|attempts| attempts.families.get(counts.family).last()));
                }
            }
        }
        late.last_after_ms = last.map(|last| millis(last.since(self.ended_at)));
        verdict.late = Some(late);
        verdict
    }

    /// Only a sensor that is known to see everything is said to have watched.
    fn observed_for_ms(&self, evidence: &Evidence) -> u64 {
        match (self.closed_at, &evidence.sensor) {
            (Some(closed_at), SensorState::Proven { since, strategy }) if strategy.sees_closed_ports() => {
                millis(evidence.taken_at.since(closed_at.max(*since)))
            }
            _ => 0,
        }
    }
}
