//! Attempts over time, of every listener and family, in bins that are all as wide. A drain that outlasts them gets wider ones.

use std::collections::BTreeMap;

use super::course::{Attempts, Lane};
use crate::core::{
    class::Class,
    event::PortAttempts,
    listener::{Family, Port},
};

/// How many bins there are at most.
pub(super) const MOST: usize = 240;

/// How wide a bin is at first, in milliseconds.
pub(super) const NARROWEST: u64 = 100;

/// The bins of one drain.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    every: u64,
    lanes: BTreeMap<(Port, Family), Counted>,
}

/// One lane: what has come since its first sample, bin by bin, and the totals of the last.
#[derive(Clone, Debug)]
struct Counted {
    attempts: Vec<u64>,
    refused: Vec<u64>,
    last: [u64; 2],
}

impl Default for Bins {
    fn default() -> Self {
        Self { every: NARROWEST, lanes: BTreeMap::new() }
    }
}

impl Bins {
    /// Takes in a sample of the totals, `at` milliseconds after the hook's call. A port's first sample is where its count begins;
    /// what came between two samples is of the bin of the later one.
    pub(super) fn sample(&mut self, at: u64, totals: &BTreeMap<Port, PortAttempts>) {
        while usize::try_from(at / self.every).unwrap_or(usize::MAX) >= MOST {
            self.widen();
        }
        let bin = usize::try_from(at / self.every).unwrap_or(usize::MAX);
        for (port, total) in totals {
            for family in Family::ALL {
                let of = total.families.get(family);
                let counting = Class::ALL.into_iter().filter(|class| class.counts());
                let now = [counting.map(|class| of.get(class).count).sum(), of.get(Class::Refused).count];
                let fresh = || Counted { attempts: Vec::new(), refused: Vec::new(), last: now };
                self.lanes.entry((*port, family)).or_insert_with(fresh).add(bin, now);
            }
        }
    }

    /// Pairs of bins become one.
    fn widen(&mut self) {
        self.every = self.every.saturating_mul(2);
        for lane in self.lanes.values_mut() {
            lane.attempts = merged(&lane.attempts, 2);
            lane.refused = merged(&lane.refused, 2);
        }
    }

    /// As they are told. `families` says which lanes there are: of a family in which the pod has no address nothing is told.
    pub(super) fn told(&self, families: impl Fn(Family) -> bool) -> Attempts {
        let lanes = self.lanes.iter().filter(|((_, family), _)| families(*family));
        let lanes = lanes.map(|((port, family), counted)| Lane {
            port: *port,
            family: *family,
            counting: counted.attempts.clone(),
            refused: counted.refused.clone(),
        });
        Attempts { every_ms: self.every, lanes: lanes.collect() }
    }
}

impl Counted {
    fn add(&mut self, bin: usize, now: [u64; 2]) {
        let [attempts, refused] = now;
        for (bins, more) in [
            (&mut self.attempts, attempts.saturating_sub(self.last[0])),
            (&mut self.refused, refused.saturating_sub(self.last[1])),
        ] {
            if more == 0 {
                continue;
            }
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            if let Some(count) = bins.get_mut(bin) {
                *count += more;
            }
        }
        self.last = now;
    }
}

/// Bins of which each is `by` of these.
pub(super) fn merged(bins: &[u64], by: usize) -> Vec<u64> {
    bins.chunks(by.max(1)).map(|bins| bins.iter().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        clock::Monotonic,
        event::{Attempts as OfClass, ByFamily, Tally},
    };

    fn totals(new: u64, refused: u64) -> BTreeMap<Port, PortAttempts> {
        let of = |class| match class {
            Class::New => Tally { count: new, last: None },
            Class::Refused => Tally { count: refused, last: None },
            Class::Stray => Tally { count: 1000, last: None },
            _ => Tally::default(),
        };
        let families = ByFamily { v4: OfClass::of(of), v6: OfClass::default() };
        let port = Port::try_from(80).unwrap();
        [(port, PortAttempts { watched_since: Monotonic::default(), families })].into()
    }

    fn v4(bins: &Bins) -> Lane {
        bins.told(|family| family == Family::V4).lanes.remove(0)
    }

    #[test]
    fn counts_begin_with_the_first_sample_and_fall_into_the_bin_of_the_later_one() {
        let mut bins = Bins::default();
        bins.sample(0, &totals(7, 1));
        bins.sample(150, &totals(9, 1));
        bins.sample(199, &totals(10, 3));
        bins.sample(420, &totals(11, 3));
        let lane = v4(&bins);
        // Refused ones count as attempts, strays do not.
        assert_eq!((lane.counting, lane.refused), (vec![0, 5, 0, 0, 1], vec![0, 2]));
        assert_eq!(bins.told(|_| true).lanes.len(), 2);
    }

    #[test]
    fn a_long_drain_gets_wider_bins_and_loses_no_attempt() {
        let mut bins = Bins::default();
        for second in 0..=600 {
            bins.sample(second * 1000, &totals(second, 0));
        }
        let told = bins.told(|_| true);
        assert_eq!(told.every_ms, 3200);
        let lane = v4(&bins);
        assert!(lane.counting.len() <= MOST);
        assert_eq!(lane.counting.iter().sum::<u64>(), 600);
        assert!(lane.counting.iter().skip(1).rev().skip(1).all(|bin| (3..=4).contains(bin)), "{lane:?}");
    }
}
