//! The only place that reads a clock.

use rustix::time::{ClockId, clock_gettime};

use crate::core::clock::Monotonic;

/// Wall time, RFC 3339 in UTC. For people: it enters a verdict and decides nothing.
pub fn wall_time() -> String {
    jiff::Timestamp::now().to_string()
}

/// `CLOCK_MONOTONIC` now: what `bpf_ktime_get_ns` reads, too. It stands still while the machine is suspended.
pub fn now() -> Monotonic {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Monotonic::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
