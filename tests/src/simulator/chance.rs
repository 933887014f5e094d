//! Randomness from a seed: the same in every run, and of its own for each part of the world, so that leaving one thing
//! out changes nothing else.

use std::time::Duration;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Chance(fastrand::Rng);

/// Whose stream it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    Plan,
    Controller,
    Node(usize),
    Observer,
    Fence,
    Pod,
    Clients,
    Balancer,
}

impl Chance {
    /// The stream of one part of the world of a seed.
    pub(super) fn of(seed: u64, stream: Stream) -> Self {
        let number = match stream {
            Stream::Plan => 1,
            Stream::Controller => 2,
            Stream::Observer => 3,
            Stream::Fence => 4,
            Stream::Pod => 5,
            Stream::Clients => 6,
            Stream::Balancer => 7,
            Stream::Node(node) => 16 + node as u64,
        };
        // Neighbouring seeds must not give neighbouring states.
        let mut seeds = fastrand::Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 56));
        Self(fastrand::Rng::with_seed(seeds.u64(..)))
    }

    /// Shorter than `limit`; zero where that is zero.
    pub(super) fn below(&mut self, limit: Duration) -> Duration {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(if nanos == 0 { 0 } else { self.0.u64(..nanos) })
    }

    /// At least `from`, shorter than `to`.
    pub(super) fn between(&mut self, from: Duration, to: Duration) -> Duration {
        from + self.below(to.saturating_sub(from))
    }

    /// Milliseconds: at least `from`, fewer than `to`.
    pub(super) fn ms(&mut self, from: u64, to: u64) -> Duration {
        self.between(Duration::from_millis(from), Duration::from_millis(to))
    }

    /// Mostly short and sometimes long, as waiting times are; never `limit`.
    pub(super) fn waiting(&mut self, mean: Duration, limit: Duration) -> Duration {
        let drawn = mean.mul_f64(-(1.0 - self.0.f64()).ln());
        if drawn < limit { drawn } else { self.below(limit) }
    }

    /// True once in `times`.
    pub(super) fn one_in(&mut self, times: u32) -> bool {
        self.0.u32(..times) == 0
    }

    /// True so many times in a hundred.
    pub(super) fn percent(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// A number below `count`, which is not zero.
    pub(super) fn index(&mut self, count: usize) -> usize {
        self.0.usize(..count)
    }

    /// Nanoseconds: fewer than `limit` milliseconds off zero, to either side.
    pub(super) fn off_by_ms(&mut self, limit: i64) -> i64 {
        self.0.i64(-limit..limit) * 1_000_000
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}
