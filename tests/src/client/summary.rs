//! Attempts in numbers.

use std::{collections::BTreeMap, fmt};

use super::{Attempt, Outcome};

/// What came of a number of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many were tried.
    pub tried: u64,
    /// How many of them are still on the way.
    pub outstanding: u64,
    /// How many were answered, by server.
    pub served: BTreeMap<String, u64>,
    /// How many were refused.
    pub refused: u64,
    /// How many were reset.
    pub reset: u64,
    /// How many were closed without an answer.
    pub closed: u64,
    /// How many had no outcome within their time.
    pub timed_out: u64,
    /// How many failed otherwise.
    pub other: u64,
    /// The first and the last that were not answered, each in words.
    pub lost_between: Option<(String, String)>,
}

// === impl Summary ===

impl Summary {
    /// Adds up attempts that have ended.
    pub fn of<'a>(attempts: impl IntoIterator<Item = &'a Attempt>) -> Self {
        let mut summary = Self::default();
        let mut lost = Vec::new();
        for attempt in attempts {
            summary.tried += 1;
            summary.add(&attempt.outcome);
            if !matches!(attempt.outcome, Outcome::Served { .. }) {
                lost.push(attempt);
            }
        }
        lost.sort_by_key(|attempt| attempt.tried_at);
        let words = |attempt: &Attempt| format!("{} {:.1?} after the client's start", attempt.target, attempt.offset);
        summary.lost_between = lost.first().zip(lost.last()).map(|(first, last)| (words(first), words(last)));
        summary
    }

    /// How many a server answered.
    pub fn served_by(&self, name: &str) -> u64 {
        self.served.get(name).copied().unwrap_or(0)
    }

    /// How many were answered by anybody.
    pub fn served_in_all(&self) -> u64 {
        self.served.values().sum()
    }

    /// How many ended without an answer: what a drain must keep at zero.
    pub fn lost(&self) -> u64 {
        self.refused + self.reset + self.closed + self.timed_out + self.other
    }

    pub(super) fn add(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Served { by } => self.served.entry(by.clone()).or_default(),
            Outcome::Refused => &mut self.refused,
            Outcome::Reset => &mut self.reset,
            Outcome::Closed => &mut self.closed,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Other(_) => &mut self.other,
        };
        *count += 1;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tried", self.tried)?;
        for (name, count) in &self.served {
            write!(f, ", {count} served by {name}")?;
        }
        for (count, what) in [
            (self.refused, "refused"),
            (self.reset, "reset"),
            (self.closed, "closed without an answer"),
            (self.timed_out, "timed out"),
            (self.other, "failed otherwise"),
            (self.outstanding, "outstanding"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if let Some((first, last)) = &self.lost_between {
            write!(f, " (first {first}, last {last})")?;
        }
        Ok(())
    }
}
