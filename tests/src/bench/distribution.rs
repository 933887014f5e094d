//! A number of measured times.

use serde_json::{Value, json};

/// Times in nanoseconds; negative ones are early.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution(Vec<i64>);

impl Distribution {
    /// One more.
    pub(super) fn add(&mut self, nanos: i64) {
        let at = self.0.partition_point(|other| *other <= nanos);
        self.0.insert(at, nanos);
    }

    /// All of another.
    pub(super) fn take(&mut self, other: Self) {
        for nanos in other.0 {
            self.add(nanos);
        }
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that `part` (0 to 1) of them do not exceed (nearest rank), in milliseconds; none of none.
    pub(super) fn quantile(&self, part: f64) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a rank among some hundreds"
        )]
        let rank = ((self.0.len() as f64 * part).ceil() as usize).max(1);
        self.0.get(rank - 1).map(|nanos| millis(*nanos))
    }

    /// The usual quantiles in milliseconds, and all the times in microseconds.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "count": self.count(),
            "minMs": self.quantile(0.0),
            "p50Ms": self.quantile(0.5),
            "p90Ms": self.quantile(0.9),
            "p99Ms": self.quantile(0.99),
            "maxMs": self.quantile(1.0),
            "sortedMicros": self.0.iter().map(|nanos| nanos / 1000).collect::<Vec<_>>(),
        })
    }

    /// The usual quantiles as cells of a table.
    pub(super) fn cells(&self) -> String {
        [0.0, 0.5, 0.9, 0.99, 1.0]
            .map(|part| self.quantile(part).map_or_else(|| format!("{:>9}", "-"), |millis| format!("{millis:>9.2}")))
            .concat()
    }
}

/// The head of a table of [`Distribution::cells`].
pub(super) const HEAD: &str = "      min      p50      p90      p99      max";

#[expect(clippy::cast_precision_loss, reason = "a time of less than 100 days")]
fn millis(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let mut times = Distribution::default();
        assert_eq!(times.quantile(0.5), None);
        for millis in (1..=200).rev() {
            times.add(millis * 1_000_000);
        }
        assert_eq!(times.cells(), "     1.00   100.00   180.00   198.00   200.00");
    }
}
