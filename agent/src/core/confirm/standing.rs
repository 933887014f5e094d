//! How many nodes are in which state, without looking at them all.

use std::collections::BTreeMap;

use super::{
    proof::By,
    reach::{Reach, StatusGiven},
};

/// Where one node stands over one family, as far as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Standing {
    pub(super) reach: Reach,
    pub(super) by: Option<By>,
}

/// How many nodes have each standing: a handful of kinds, whatever the number of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Standings(BTreeMap<Standing, u64>);

/// How many nodes are in which state over one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Confirmed by the fence.
    pub confirmed: u64,
    /// Confirmed by `syncs` or `settled`.
    pub assumed: u64,
    /// Only waited for.
    pub waited: u64,
    /// Nothing yet.
    pub pending: u64,
    /// They show nothing.
    pub unobservable: u64,
}

// === impl Standings ===

impl Standings {
    /// One node more stands here.
    pub(super) fn enter(&mut self, standing: Standing) {
        *self.0.entry(standing).or_default() += 1;
    }

    /// One node fewer stands here.
    pub(super) fn leave(&mut self, standing: Standing) {
        if let Some(count) = self.0.get_mut(&standing) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.0.remove(&standing);
            }
        }
    }

    /// There was a relevant change: nobody has shown anything.
    pub(super) fn void(&mut self) {
        let mut voided = BTreeMap::new();
        for (standing, count) in &self.0 {
            *voided.entry(Standing { by: None, ..*standing }).or_default() += count;
        }
        self.0 = voided;
    }

    /// The counts.
    pub(super) fn tally(&self, given: StatusGiven) -> Tally {
        let mut tally = Tally::default();
        for (standing, count) in &self.0 {
            let of_its_kind = match standing.by {
                Some(By::Fence) => &mut tally.confirmed,
                Some(By::Syncs | By::SettledByEdge | By::SettledByWait) => &mut tally.assumed,
                Some(By::Waited) => &mut tally.waited,
                None if standing.reach.is_unobservable(given) => &mut tally.unobservable,
                None => &mut tally.pending,
            };
            *of_its_kind += count;
        }
        tally
    }
}

// === impl Tally ===

impl Tally {
    /// All nodes.
    pub fn total(&self) -> u64 {
        self.confirmed + self.assumed + self.waited + self.pending + self.unobservable
    }
}
