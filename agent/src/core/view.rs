//! What the core shows of itself to whoever looks: the status and the metrics.

use std::sync::Arc;

use super::{
    clock::{Monotonic, millis},
    counts::CountsBefore,
    drain::Core,
    event::Evidence,
    journal::Journal,
    report,
    verdict::{Condition, Listener, Verdict},
};

/// A drain under way, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainView {
    /// Wall time of the hook's call, RFC 3339.
    pub started_at: String,
    /// Since the hook's call.
    pub elapsed_ms: u64,
    /// It ends at the latest after this.
    pub max_wait_ms: u64,
    /// How many callers wait.
    pub callers: usize,
    /// What holds it.
    pub holding: Vec<Condition>,
}

/// When a drain began, and when it ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first call of the hook.
    pub started: Monotonic,
    /// S1: the bound.
    pub bound: Monotonic,
}

impl Core {
    /// Whether a drain is under way.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// From when to when at the latest the drain under way lasts (S1).
    pub fn drain_span(&self) -> Option<Span> {
        self.drain.as_ref().map(|drain| Span { started: drain.started, bound: drain.bound })
    }

    /// The drain under way.
    pub fn drain_view(&self, now: Monotonic) -> Option<DrainView> {
        self.drain.as_ref().map(|drain| DrainView {
            started_at: drain.wall_time.clone(),
            elapsed_ms: millis(now.since(drain.started)),
            max_wait_ms: millis(self.settings.max_wait),
            callers: drain.callers.len(),
            holding: drain.holding(),
        })
    }

    /// Every watched listener, as of the newest evidence: counts since the hook's call while a drain runs, else since it
    /// is watched.
    pub fn listeners(&self) -> Vec<Listener> {
        self.listeners_from(self.drain.as_ref().and_then(|drain| drain.counts_before.as_ref()))
    }

    /// Every watched listener, as of the newest evidence, counted since it is watched.
    pub fn totals(&self) -> Vec<Listener> {
        self.listeners_from(None)
    }

    fn listeners_from(&self, before: Option<&CountsBefore>) -> Vec<Listener> {
        let Some(evidence) = &self.evidence else {
            return Vec::new();
        };
        let from = report::From { before, since: self.since(evidence), quiet_period: self.settings.quiet_period };
        report::listeners(&self.watched, evidence, from)
    }

    /// The newest evidence.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    /// S3: what showed the sensor to be blind in the drain under way, in words.
    pub fn blind(&self) -> Option<String> {
        self.drain.as_ref().and_then(|drain| drain.blind).map(report::blind)
    }

    /// The last drain's result, as it was answered.
    pub fn verdict(&self) -> Option<&Arc<Verdict>> {
        self.verdict.as_ref()
    }

    /// The last drain's result with what came after it (S7), as of the newest evidence.
    pub fn completed_verdict(&self) -> Option<Verdict> {
        let verdict = self.verdict.as_deref()?;
        Some(match (&self.after_end, &self.evidence) {
            (Some(after_end), Some(evidence)) => after_end.complete(verdict, evidence),
            _ => verdict.clone(),
        })
    }

    /// How many drains have ended.
    pub fn drains_ended(&self) -> u64 {
        self.drains_ended
    }

    /// What happened.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}
