//! Kubelet's probes where nothing tells who sent a SYN: by the period of the probe, and by the phase that was learnt before
//! the drain. What does not fit counts as a client's.
//!
//! Kubelet's probes tick (`time.NewTicker` in `pkg/kubelet/prober/worker.go`): each comes a whole number of periods after
//! any other, give or take what the node is late. A client can hide only by connecting, from the node's own address, once
//! at a tick at which kubelet does not; so a drain that rests on this claims no more than `unverified`.

use std::{collections::VecDeque, time::Duration};

use super::clock::Monotonic;

/// So many SYNs one after the other have to be a period apart before the phase is known.
const LEARNT_FROM: usize = 5;

/// How far from its tick a probe may come: this part of the period.
const TOLERANCE: u32 = 20;

/// And at most this much.
const MOST_TOLERANCE: Duration = Duration::from_millis(100);

/// What a SYN's source is known by: equal for equal addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(pub u64);

/// A SYN that may be a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// When it came.
    pub at: Monotonic,
    /// From where.
    pub source: Source,
}

/// The pace of one port's probes over one family.
#[derive(Clone, Debug)]
pub struct Pace {
    period: Duration,
    /// The newest before the drain, the newest last.
    history: VecDeque<Candidate>,
    phase: Option<Phase>,
}

/// A probe that all others are a whole number of periods away from.
#[derive(Clone, Copy, Debug)]
struct Phase {
    anchor: Candidate,
    /// The newest tick at which a probe came, counted from the anchor.
    taken: u64,
}

impl Pace {
    /// Nothing is known yet. The period is more than nothing.
    pub fn new(period: Duration) -> Self {
        Self { period, history: VecDeque::new(), phase: None }
    }

    /// The time from one probe to the next.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Whether the phase is known.
    pub fn is_known(&self) -> bool {
        self.phase.is_some()
    }

    /// SYNs may have come that are not known of: what was learnt before them is no longer sure to go on.
    pub fn forget(&mut self) {
        self.history.clear();
        self.phase = None;
    }

    /// Takes one SYN, in the order of their times, and tells whether it is a probe. What comes during a drain is not learnt
    /// from: a client that comes again and again would teach its own pace.
    pub fn take(&mut self, candidate: Candidate, learn: bool) -> bool {
        let fits = self.fits(candidate);
        if let (Some(tick), Some(phase)) = (fits, &mut self.phase) {
            phase.taken = tick;
        }
        if learn {
            self.learn(candidate);
        }
        fits.is_some()
    }

    /// The tick that it comes at, if that is a later one than the last that was taken.
    fn fits(&self, candidate: Candidate) -> Option<u64> {
        let phase = self.phase.filter(|phase| phase.anchor.source == candidate.source)?;
        let since = candidate.at.since(phase.anchor.at);
        let tick = ticks(since + self.period / 2, self.period);
        let due = self.period.checked_mul(u32::try_from(tick).ok()?)?;
        (tick > phase.taken && since.abs_diff(due) <= self.tolerance()).then_some(tick)
    }

    /// A phase that is known stays until another one shows: a probe that is late, or a client in between, does not make it
    /// untrue.
    fn learn(&mut self, candidate: Candidate) {
        self.history.push_back(candidate);
        if self.history.len() > LEARNT_FROM {
            self.history.pop_front();
        }
        let apart = |(one, next): (&Candidate, &Candidate)| {
            one.source == next.source && next.at.since(one.at).abs_diff(self.period) <= self.tolerance()
        };
        let steady =
            self.history.len() == LEARNT_FROM && self.history.iter().zip(self.history.iter().skip(1)).all(apart);
        if steady {
            self.phase = Some(Phase { anchor: candidate, taken: 0 });
        }
    }

    fn tolerance(&self) -> Duration {
        (self.period / TOLERANCE).min(MOST_TOLERANCE)
    }
}

/// How many whole periods there are in a time.
fn ticks(time: Duration, period: Duration) -> u64 {
    u64::try_from(time.as_nanos() / period.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: u64 = 1000;
    const KUBELET: Source = Source(1);

    fn at(millis: u64, source: Source) -> Candidate {
        Candidate { at: Monotonic::from_nanos(millis * 1_000_000), source }
    }

    /// After probes at 1000, 2000, … 5000 ms.
    fn learnt() -> Pace {
        let mut pace = Pace::new(Duration::from_millis(PERIOD));
        for tick in 1..=LEARNT_FROM as u64 {
            assert!(!pace.take(at(tick * PERIOD, KUBELET), true), "nothing is known yet");
        }
        assert!(pace.is_known());
        pace
    }

    #[test]
    fn a_syn_at_each_tick_is_a_probe_a_little_early_or_late_too() {
        let mut pace = learnt();
        for millis in [6000, 7049, 7951, 9000, 12_000] {
            assert!(pace.take(at(millis, KUBELET), false), "{millis}");
        }
    }

    #[test]
    fn what_is_off_the_phase_is_none() {
        let mut pace = learnt();
        for millis in [5000, 5100, 5500, 5949, 6051, 6500] {
            assert!(!pace.take(at(millis, KUBELET), false), "{millis}");
        }
        assert!(pace.take(at(7000, KUBELET), false), "the phase stays what it was");
    }

    #[test]
    fn of_a_burst_one_at_each_tick_is_a_probe_at_most() {
        let mut pace = learnt();
        let probes = (5000..10_000).step_by(100).filter(|millis| pace.take(at(*millis, KUBELET), false)).count();
        assert_eq!(probes, 4, "at 6, 7, 8 and 9 s");
        let mut pace = learnt();
        let probes = (5980..6020).filter(|millis| pace.take(at(*millis, KUBELET), false)).count();
        assert_eq!(probes, 1);
    }

    #[test]
    fn another_source_is_none() {
        let mut pace = learnt();
        assert!(!pace.take(at(6000, Source(2)), false));
        assert!(pace.take(at(6001, KUBELET), false));
    }

    #[test]
    fn a_drain_teaches_nothing() {
        let mut pace = Pace::new(Duration::from_millis(PERIOD));
        for tick in 1..=50 {
            assert!(!pace.take(at(tick * PERIOD, KUBELET), false), "{tick}");
        }
        let mut pace = learnt();
        for tick in 6..=50 {
            assert!(!pace.take(at(tick * PERIOD + 300, KUBELET), false), "{tick}");
        }
    }

    #[test]
    fn clients_in_between_keep_the_phase_from_being_learnt() {
        let mut pace = Pace::new(Duration::from_millis(PERIOD));
        for tick in 1..=20 {
            pace.take(at(tick * PERIOD, KUBELET), true);
            pace.take(at(tick * PERIOD + 700, KUBELET), true);
        }
        assert!(!pace.is_known());
        assert!(!pace.take(at(21 * PERIOD, KUBELET), false));
    }

    #[test]
    fn a_late_probe_and_a_client_in_between_leave_the_phase_as_it_was() {
        let mut pace = learnt();
        for (millis, probe) in [(6300, false), (7000, true), (7400, false), (8000, true), (8010, false)] {
            assert_eq!(pace.take(at(millis, KUBELET), true), probe, "{millis}");
        }
        assert!(!pace.take(at(8020, KUBELET), false), "this tick was taken before the drain");
        assert!(pace.take(at(9000, KUBELET), false));
    }

    #[test]
    fn a_kubelet_that_begins_anew_has_another_phase() {
        let mut pace = learnt();
        for tick in 6..11 {
            assert!(!pace.take(at(tick * PERIOD + 400, KUBELET), true), "{tick}");
        }
        assert!(pace.take(at(11_400, KUBELET), false));
        assert!(!pace.take(at(12_000, KUBELET), false));
    }

    #[test]
    fn what_is_forgotten_is_learnt_anew() {
        let mut pace = learnt();
        pace.forget();
        assert!(!pace.take(at(6000, KUBELET), false));
    }

    proptest! {
        /// Whatever comes, at most one SYN a period is a probe, and with another one at a tick at least one is not.
        #[test]
        fn never_more_probes_than_ticks(mut times in prop::collection::vec(5001_u64..20_000, 0..60)) {
            times.sort_unstable();
            let mut pace = learnt();
            let probes = times.iter().filter(|millis| pace.take(at(**millis, KUBELET), false)).count();
            prop_assert!(probes <= 15);
            let ticks: std::collections::BTreeSet<_> = times.iter().map(|millis| (millis + 500) / PERIOD).collect();
            prop_assert!(probes <= ticks.len());
        }
    }
}
