//! Time, as it comes in: one clock, in types that no other clock's values fit.

use std::{
    ops::{Add, Sub},
    time::Duration,
};

/// An instant of `CLOCK_MONOTONIC`: the agent's clock, and the kernel's `bpf_ktime_get_ns`. Wall time never decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(u64);

/// How long ago something was. Not an instant, and not a length that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(Duration);

// === impl Monotonic ===

impl Monotonic {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `self` was at `now`; zero if it had not come yet.
    pub fn age_at(self, now: Self) -> Age {
        Age(Duration::from_nanos(now.0.saturating_sub(self.0)))
    }

    /// The time from `earlier` to `self`; zero if they are the other way round.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Monotonic {
    type Output = Self;

    /// Later by `length`; at the end of the clock (584 years) it stays there.
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Monotonic {
    type Output = Self;

    /// Earlier by `length`; at the clock's start (boot) it stays there.
    fn sub(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)))
    }
}

// === impl Age ===

impl Age {
    /// Whether it is at least `length` ago.
    pub fn reaches(self, length: Duration) -> bool {
        self.0 >= length
    }

    /// Whole milliseconds.
    pub fn as_millis(self) -> u64 {
        millis(self.0)
    }
}

/// Whole milliseconds of a length of time, for what people read.
pub fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_never_wraps() {
        let first = Monotonic::from_nanos(5);
        let last = Monotonic::from_nanos(u64::MAX);
        assert_eq!(first.since(last), Duration::ZERO);
        assert_eq!(last + Duration::from_secs(1), last);
        assert_eq!(first - Duration::from_secs(1), Monotonic::from_nanos(0));
        assert_eq!(last + Duration::MAX, last);
        assert_eq!(last.age_at(first).as_millis(), 0);
    }

    #[test]
    fn an_age_reaches_its_own_length() {
        let age = Monotonic::from_nanos(10).age_at(Monotonic::from_nanos(2_000_000_010));
        assert!(age.reaches(Duration::from_secs(2)));
        assert!(!age.reaches(Duration::from_nanos(2_000_000_001)));
    }
}
