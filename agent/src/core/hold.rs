//! What holds the end of a drain, and for how long it is known to.

use super::clock::Monotonic;

/// One condition's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It does not hold the end.
    Met,
    /// It cannot be met before this time.
    Until(Monotonic),
    /// It may be met at any time: look again.
    Open,
    /// It is not known: the evidence lacks what it needs.
    Unread,
}

impl Hold {
    /// `Until(time)`, or `Met` where the time has come at `now`.
    pub(super) fn until(time: Monotonic, now: Monotonic) -> Self {
        if time <= now { Self::Met } else { Self::Until(time) }
    }
}
