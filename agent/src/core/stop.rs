//! S7: when the agent leaves after SIGTERM.

use std::time::Duration;

use super::{
    clock::Monotonic,
    drain::{Core, pace},
    event::{Action, Depth},
    journal::Transition,
    late::AfterEnd,
    settings::Settings,
};

/// The longest time between two looks at listeners that keep the agent: once they are closed it is to be gone within
/// 100 ms, and its last answers need some of that.
const LONGEST_PACE: Duration = Duration::from_millis(40);

/// The agent has been asked to stop.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    asked_at: Monotonic,
    left: bool,
}

impl Stopping {
    pub(super) fn new(now: Monotonic) -> Self {
        Self { asked_at: now, left: false }
    }

    pub(super) fn asked_at(&self) -> Monotonic {
        self.asked_at
    }

    /// It leaves at the latest then: `stopReserve` after the newest drain's bound; without a drain, or after one that is
    /// long over, after the bound that a drain called with the signal would have.
    pub(super) fn limit(&self, bound: Option<Monotonic>, settings: &Settings) -> Monotonic {
        let limit = bound.map(|bound| bound + settings.stop_reserve).filter(|limit| *limit > self.asked_at);
        limit.unwrap_or(self.asked_at + settings.max_wait + settings.stop_reserve)
    }

    /// Marks it as gone; `false` if it was already.
    pub(super) fn leave(&mut self) -> bool {
        !std::mem::replace(&mut self.left, true)
    }

    /// Whether it is gone.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }
}

impl Core {
    /// Leaves, or looks again before long whether anything keeps it.
    pub(super) fn advance_stop(&mut self, now: Monotonic) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        let asked_at = stopping.asked_at();
        let seen = self.evidence.as_ref().filter(|evidence| evidence.taken_at >= asked_at);
        // A listener that cannot be seen keeps nobody: a hook that finds no agent holds to its own bound (S2).
        let open = seen.map(|evidence| evidence.sockets.is_ok() && self.watched.any_open());
        // After a drain the operator may want to know what still comes, up to a last reading.
        let closed_at = self.after_end.as_ref().and_then(AfterEnd::closed_at);
        let until = closed_at.map(|closed_at| closed_at + self.settings.linger);
        let lingers = seen.is_some_and(|evidence| until > Some(evidence.taken_at));
        let done = self.drain.is_none() && open == Some(false) && !lingers;
        if now >= stopping.limit(self.bound, &self.settings) || done {
            if stopping.leave() {
                self.journal.record(now, Transition::Stopping);
                self.actions.push_back(Action::Exit);
            }
        } else if self.drain.is_none()
            && let Some(evidence) = &self.evidence
        {
            let paced = self.received + pace(evidence.taken_at.since(asked_at)).min(LONGEST_PACE);
            self.look_at = self.look_at.min(paced);
            if now >= self.look_at {
                self.read(Depth::Listeners, now);
            }
        }
    }
}
