//! The one clock of the lab, which is the kernel's and the agent's too.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on `CLOCK_MONOTONIC`: what `bpf_ktime_get_ns` stamps with, and the same in every network namespace.
pub fn monotonic_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is negative on this clock, which starts at zero when the machine does.
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanoseconds
}

/// A moment by which something has to have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(u64);

// === impl Deadline ===

impl Deadline {
    /// The moment that is `within` from now.
    pub fn after(within: Duration) -> Self {
        let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        Self(monotonic_now().saturating_add(within))
    }

    /// What is left; zero once it has passed.
    pub fn left(self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(monotonic_now()))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }
}
