//! What holds the end of a drain, and for how long it is known to.

use super::clock::Monotonic;

/// One condition's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It does not hold the end.
    Met,
    /// It cannot be met before this time.
    Until(Monotonic),
    /// It may be met at any time, and is at this time if nothing new comes: look again.
    AtMost(Monotonic),
    /// It may be met at any time: look again.
    Open,
    /// What it waits for comes by itself.
    Awaited,
    /// It holds nothing as far as is known, and is asked about once the others are met.
    Unasked,
    /// It is not known: the evidence lacks what it needs.
    Unread,
}

impl Hold {
    /// `Until(time)`, or `Met` where the time has come at `now`.
    pub(super) fn until(time: Monotonic, now: Monotonic) -> Self {
        if time <= now { Self::Met } else { Self::Until(time) }
    }

    /// `AtMost(time)`, or `Met` where the time has come at `now`.
    pub(super) fn at_most(time: Monotonic, now: Monotonic) -> Self {
        if time <= now { Self::Met } else { Self::AtMost(time) }
    }

    /// What is known at `now` where this reading does not tell: what the one before it told.
    pub(super) fn or(self, before: Self, now: Monotonic) -> Self {
        match (self, before) {
            (Self::Unread, Self::Until(time) | Self::AtMost(time)) if time <= now => Self::Unread,
            // What came by itself has come, or this reading would say so.
            (Self::Unread, Self::Awaited) => Self::Unread,
            (Self::Unread, before) => before,
            (known, _) => known,
        }
    }

    /// Whether it is known to hold the end.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Until(_) | Self::AtMost(_) | Self::Open | Self::Awaited)
    }
}
