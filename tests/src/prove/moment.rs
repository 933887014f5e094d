//! Moments at which something is done: chosen by chance, the same in every run, and awaited.

use std::time::Duration;

use anyhow::Result;

use crate::{clock::monotonic_now, wait::await_condition};

/// Numbers that look like chance and are the same for the same seed (`SplitMix64`), so that a failure can be repeated.
#[derive(Clone, Debug)]
pub struct Dice(u64);

// === impl Dice ===

impl Dice {
    /// Dice that always fall in the same way for this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A length of time, shorter than `limit`.
    pub fn within(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(f64::from(self.roll()) / (f64::from(u32::MAX) + 1.0))
    }

    /// A number from 0 on, smaller than `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll()).unwrap_or(0).checked_rem(limit).unwrap_or(0)
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.roll().to_le_bytes()[3]
    }

    /// Whether a coin falls on its head.
    pub fn coin(&mut self) -> bool {
        self.roll() & 1 == 1
    }

    fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u32::try_from(mixed >> 32).unwrap_or(u32::MAX) // it fits
    }
}

/// Waits until `length` has passed since `since`, a moment on the clock of [`monotonic_now`]. It returns some milliseconds
/// later, never earlier.
///
/// # Errors
///
/// None, unless the machine stands still for seconds.
pub fn wait_until(since: u64, length: Duration) -> Result<()> {
    let moment = since.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    let left = Duration::from_nanos(moment.saturating_sub(monotonic_now()));
    await_condition("a moment", left + Duration::from_secs(5), || monotonic_now() >= moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dice_fall_the_same_way_and_all_over() {
        let limit = Duration::from_secs(1);
        let rolls: Vec<Duration> = {
            let mut dice = Dice::seeded(7);
            (0..1000).map(|_| dice.within(limit)).collect()
        };
        let mut again = Dice::seeded(7);
        assert!(rolls.iter().all(|roll| *roll == again.within(limit)));
        assert!(rolls.iter().all(|roll| *roll < limit));
        for tenth in 0..10 {
            let from = limit / 10 * tenth;
            assert!(rolls.iter().any(|roll| (from..from + limit / 10).contains(roll)), "none in tenth {tenth}");
        }
    }
}
