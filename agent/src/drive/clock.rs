//! The only place that reads a clock.

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

use crate::core::clock::Monotonic;

/// Blocks the thread until a time of our clock: for the last moments, where the event loop's timers, which count
/// milliseconds, are too coarse.
pub(crate) fn wait_until(time: Monotonic) {
    let nanos = time.as_nanos();
    let time = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000).try_into().unwrap_or(0),
    };
    if let Err(error) = clock_nanosleep_absolute(ClockId::Monotonic, &time) {
        // A signal: it is early, and the core says again when it is due.
        tracing::trace!(%error, "a sleep ended early");
    }
}

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
