//! S7: when the agent leaves after SIGTERM.

use super::{clock::Monotonic, settings::Settings};

/// The agent has been asked to stop.
#[derive(Debug)]
pub(super) struct Stopping {
    asked_at: Monotonic,
    /// Of the drain that runs, or ran last, since it was asked.
    bound: Option<Monotonic>,
    left: bool,
}

impl Stopping {
    pub(super) fn new(now: Monotonic) -> Self {
        Self { asked_at: now, bound: None, left: false }
    }

    pub(super) fn asked_at(&self) -> Monotonic {
        self.asked_at
    }

    /// A drain runs, with this bound. It counts also when the drain has ended.
    pub(super) fn drain_runs(&mut self, bound: Monotonic) {
        self.bound = Some(bound);
    }

    /// It leaves at the latest then: `stopReserve` after the drain's bound, or after the bound that a drain called with
    /// the signal would have.
    pub(super) fn limit(&self, settings: &Settings) -> Monotonic {
        self.bound.unwrap_or(self.asked_at + settings.max_wait) + settings.stop_reserve
    }

    /// Marks it as gone; `false` if it was already.
    pub(super) fn leave(&mut self) -> bool {
        !std::mem::replace(&mut self.left, true)
    }
}
