//! What a node is to show: a number of ready endpoints from 1 to 5, which goes round.

use std::{fmt, time::Duration};

/// How many values there are.
///
/// A marker's effect is the next value, and a node's value advances only after the node has shown it. So one process is
/// never more than one step behind, and two values would do. A process that starts may list what is older than what its
/// predecessor had, by up to `firstList`. Within that time at most three values are written ([`LISTS`]), a fourth may be on
/// its way: what the process shows first is one of five, and with five values no two of them look alike.
pub const VALUES: u8 = 5;

/// How many times the spacing of writes `firstList` may be.
pub const LISTS: u32 = 2;

/// A value. Never 0, which a kube-proxy that starts answers for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u8);

impl Generation {
    /// What a node begins with.
    pub const FIRST: Self = Self(1);

    /// The value of so many endpoints; `None` where there is no such value.
    pub fn of(endpoints: u64) -> Option<Self> {
        u8::try_from(endpoints).ok().filter(|value| (1..=VALUES).contains(value)).map(Self)
    }

    /// How many ready endpoints show it.
    pub fn endpoints(self) -> u8 {
        self.0
    }

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 % VALUES + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The longest `firstList` for which writes that are spaced so cannot be mistaken for each other.
pub fn longest_first_list(spacing: Duration) -> Duration {
    spacing.saturating_mul(LISTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_round_without_zero() {
        let mut value = Generation::FIRST;
        let mut seen = Vec::new();
        for _ in 0..=VALUES {
            seen.push(value.endpoints());
            value = value.next();
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 1]);
        assert_eq!(Generation::of(0), None);
        assert_eq!(Generation::of(6), None);
        assert_eq!(Generation::of(u64::MAX), None);
        assert_eq!(Generation::of(3).map(Generation::endpoints), Some(3));
    }

    #[test]
    fn what_a_new_process_may_show_first_is_told_apart() {
        // What was there before the time of `firstList`, what was written within it, and what is on its way.
        let within = LISTS + 1;
        assert!(1 + within < u32::from(VALUES));
    }
}
