//! What a hook that only sleeps would have done instead: attempts that came after it, or time that it would have cost.

use super::Report;

/// What people write, in seconds.
const LENGTHS: [u64; 6] = [5, 10, 15, 20, 30, 60];

/// One such hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// How long it sleeps.
    pub seconds: u64,
    /// How many attempts came after it, as far as they were counted: each would have met a server that was stopping.
    pub after: u64,
    /// By how much longer it is than the drain; 0 where it is shorter.
    pub longer_ms: u64,
}

/// Sleeps of the usual lengths. An attempt of the bin in which a sleep ends is counted as after it only if the whole bin is: the
/// number is never too high.
pub fn sleeps(report: &Report) -> Vec<Sleep> {
    let (sum, every) = (report.sum(), report.attempts.every_ms.max(1));
    let of = |seconds: u64| {
        let first = usize::try_from((seconds * 1000).div_ceil(every)).unwrap_or(usize::MAX);
        let longer_ms = (seconds * 1000).saturating_sub(report.verdict.duration_ms);
        Sleep { seconds, after: sum.iter().skip(first).sum(), longer_ms }
    };
    LENGTHS.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::verdict::Reason, report::tests::report_of};

    #[test]
    fn a_sleep_that_is_too_short_loses_and_one_that_is_too_long_costs() {
        let mut report = report_of(Reason::Quiet, 1, 120);
        report.attempts.lanes.truncate(1);
        report.attempts.lanes[0].counting = vec![0; 120];
        report.attempts.lanes[0].counting[70] = 3;
        report.attempts.lanes[0].counting[49] = 9;
        let told: Vec<_> = sleeps(&report).iter().map(|sleep| (sleep.seconds, sleep.after, sleep.longer_ms)).collect();
        assert_eq!(told[..3], [(5, 3, 0), (10, 0, 0), (15, 0, 3000)]);
    }
}
