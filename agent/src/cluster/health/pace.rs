//! When a server is asked next.

use std::time::Duration;

use tokio::time::Instant;

use crate::core::{clock::Monotonic, cluster::Wanted};

/// For how long after a change the nodes are asked at the shortest interval.
const FAST: Duration = Duration::from_secs(10);

/// How many times the interval the time between requests to a late node becomes, at most.
const SLOWEST: u32 = 8;

/// By how much a request may come early or late, in percent of the time to it: so that pods that drain together do not
/// ask together.
const JITTER: u64 = 10;

/// How often one server is asked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval: Duration,
}

impl Pace {
    /// `interval` is the shortest time between an answer and the next request; not zero.
    pub fn new(interval: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(1)) }
    }

    /// When the next request is due, by the answer before it; `None` while none is wanted. `chance` is any number: it
    /// makes the jitter. A node that is late is asked less often, up to eight times the interval; but never later than
    /// just behind the time from which its answer counts for more.
    pub fn next(&self, wanted: Wanted, now: Monotonic, chance: u64) -> Option<Monotonic> {
        let Wanted::Yes { since, due } = wanted else { return None };
        let late = now.since(since).saturating_sub(FAST);
        let slower = u32::try_from(late.as_secs() / FAST.as_secs()).unwrap_or(SLOWEST).clamp(1, SLOWEST);
        let base = self.interval.saturating_mul(slower);
        let spread = u64::try_from(base.as_nanos()).unwrap_or(u64::MAX) / 100 * JITTER * 2;
        let jitter = Duration::from_nanos(if spread == 0 { 0 } else { chance % spread });
        let paced = now + (base + jitter).saturating_sub(Duration::from_nanos(spread / 2));
        let due = due.map(|due| due + Duration::from_millis(1)).filter(|due| *due > now);
        Some(due.map_or(paced, |due| due.min(paced)))
    }
}

/// The most requests per second to all nodes together.
#[derive(Debug)]
pub struct Rate {
    spacing: Duration,
    next: tokio::sync::Mutex<Option<Instant>>,
}

impl Rate {
    /// At most `per_second` requests in a second, evenly; at least one.
    pub fn new(per_second: u32) -> Self {
        Self { spacing: Duration::from_secs(1) / per_second.max(1), next: tokio::sync::Mutex::new(None) }
    }

    /// Waits for a turn. Turns are given in the order in which they are asked for. Whoever hangs afterwards holds nothing.
    pub async fn turn(&self) {
        let turn = {
            let mut next = self.next.lock().await;
            let now = Instant::now();
            let turn = next.map_or(now, |next| next.max(now));
            *next = Some(turn + self.spacing);
            turn
        };
        tokio::time::sleep_until(turn).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_late_node_is_asked_less_often_and_one_that_is_not_wanted_never() {
        let pace = Pace::new(Duration::from_millis(250));
        let gap = |millis: u64, chance: u64| {
            let wanted = Wanted::Yes { since: at(0), due: None };
            pace.next(wanted, at(millis), chance).expect("wanted").since(at(millis))
        };
        assert_eq!(pace.next(Wanted::No, at(5), 0), None);
        for chance in [0, 1 << 20, u64::MAX] {
            assert!((225..=275).contains(&gap(100, chance).as_millis()), "{:?}", gap(100, chance));
            assert!((900..=1100).contains(&gap(50_000, chance).as_millis()), "{:?}", gap(50_000, chance));
            assert!((1800..=2200).contains(&gap(10_000_000, chance).as_millis()), "{:?}", gap(10_000_000, chance));
        }
        assert_ne!(gap(100, 0), gap(100, 1 << 20), "pods that drain together do not ask together");
    }

    #[test]
    fn the_moment_from_which_an_answer_counts_for_more_is_not_missed() {
        let pace = Pace::new(Duration::from_millis(250));
        let next = |due: u64| pace.next(Wanted::Yes { since: at(0), due: Some(at(due)) }, at(100), 0).expect("wanted");
        assert_eq!(next(150), at(151));
        assert_eq!(next(90), next(100_000), "what has been, or is far, changes nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_turns_than_the_rate_are_given() {
        let rate = Rate::new(200);
        let started = Instant::now();
        for _ in 0..401 {
            rate.turn().await;
        }
        assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
        assert!(started.elapsed() <= Duration::from_millis(2_500), "{:?}", started.elapsed());
    }
}
