//! Many drains, and what became of them.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::{
    check::Failure,
    scenario::Scenario,
    world::{Rule, World},
};

/// Lengths are counted in steps of this many milliseconds.
const STEP: u64 = 10;

/// Drains of one scenario.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// What happens in them.
    pub scenario: Scenario,
    /// The first one's seed; the others follow.
    pub first_seed: u64,
    /// How many.
    pub drains: u64,
    /// In how many threads.
    pub jobs: usize,
    /// Who decides.
    pub rule: Rule,
}

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Found {
    /// In which scenario.
    pub scenario: Scenario,
    /// By which seed.
    pub seed: u64,
    /// How.
    pub failure: Failure,
}

/// What became of the drains.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many there were.
    pub drains: u64,
    /// How many ended for each reason; `caller` is the caller's own bound.
    pub reasons: BTreeMap<&'static str, u64>,
    /// How many lasted so many steps.
    lengths: BTreeMap<u64, u64>,
    /// The first broken promise, by seed.
    pub found: Option<Found>,
}

impl Campaign {
    /// Plays them, until all are done or one broke a promise.
    pub fn run(&self) -> Summary {
        let next = AtomicU64::new(0);
        let all = Mutex::new(Summary::default());
        thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    let mut summary = Summary::default();
                    self.work(&next, &mut summary);
                    all.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(summary);
                });
            }
        });
        all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn work(&self, next: &AtomicU64, summary: &mut Summary) {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= self.drains {
                return;
            }
            let seed = self.first_seed.wrapping_add(number);
            let plan = self.scenario.plan(seed);
            let mut world = World::new(&plan, self.rule, false);
            world.play();
            summary.take(&world);
            if let Some(failure) = world.failure {
                summary.found = Some(Found { scenario: self.scenario, seed, failure });
                next.store(self.drains, Ordering::Relaxed);
                return;
            }
        }
    }
}

impl Summary {
    fn take(&mut self, world: &World<'_>) {
        self.drains += 1;
        let Some(ended) = &world.ended else { return };
        let reason = match &ended.verdict {
            Some(verdict) => verdict.reason.name(),
            None if world.naive.is_some() => "claimed",
            None => "caller",
        };
        *self.reasons.entry(reason).or_default() += 1;
        let millis = u64::try_from(ended.at.since(world.hook).as_millis()).unwrap_or(u64::MAX);
        *self.lengths.entry(millis / STEP).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        self.drains += other.drains;
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        for (length, count) in other.lengths {
            *self.lengths.entry(length).or_default() += count;
        }
        let earlier = |one: &Found, other: &Found| one.seed <= other.seed;
        self.found = match (self.found.take(), other.found) {
            (Some(one), Some(other)) if earlier(&one, &other) => Some(one),
            (one, other) => other.or(one),
        };
    }

    /// How many milliseconds this part of the drains lasted at most, as far as is counted: in steps of 10.
    pub fn within(&self, percent: u64) -> u64 {
        let all: u64 = self.lengths.values().sum();
        let mut so_far = 0;
        for (length, count) in &self.lengths {
            so_far += count;
            if so_far * 100 >= all * percent {
                return length * STEP;
            }
        }
        0
    }

    /// How many of a thousand drains ended by evidence, and not at a bound.
    pub fn by_evidence_per_mille(&self) -> u64 {
        let bound: u64 = ["bound", "caller"].iter().filter_map(|reason| self.reasons.get(reason)).sum();
        (self.drains - bound) * 1000 / self.drains.max(1)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10} drains", self.drains)?;
        for (reason, count) in &self.reasons {
            write!(f, "  {reason} {count}")?;
        }
        write!(f, "  p50 {} ms  p99 {} ms", self.within(50), self.within(99))
    }
}
