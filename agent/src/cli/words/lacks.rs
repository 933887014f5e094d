//! What a drain's end lacks, in one line.

use super::{holding, not_observed};
use crate::core::verdict::{Reason, Verdict};

/// How many things that were not observed are named in one line.
const MOST_NAMED: usize = 10;

/// What was not observed in a drain, or was still missing at its bound, in one line; `None` where nothing was.
pub fn lacks(verdict: &Verdict) -> Option<String> {
    let mut parts = Vec::new();
    if verdict.reason == Reason::Bound {
        let held = match verdict.holding.as_slice() {
            [] => String::new(),
            held => format!(", still held by {}", holding(held)),
        };
        parts.push(format!("the drain ended at its bound{held}"));
    }
    let things: Vec<_> = verdict.not_observed.iter().take(MOST_NAMED).map(not_observed).collect();
    if !things.is_empty() {
        let more = verdict.not_observed.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("not observed: {}{more}", things.join(", ")));
    }
    if !verdict.sensor.healthy {
        parts.push("the sensor may have missed SYNs".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::words::tests::verdict_of, core::verdict::NotObserved};

    #[test]
    fn it_is_one_line_however_much_there_is_and_none_where_nothing_is() {
        assert_eq!(lacks(&verdict_of(Reason::Quiet)), None);
        let mut verdict = verdict_of(Reason::Bound);
        let node = |number: u32| NotObserved {
            what: "node".to_owned(),
            name: Some(format!("node-{number}")),
            family: None,
            why: "connection refused".to_owned(),
        };
        verdict.not_observed = (0..300).map(node).collect();
        let line = lacks(&verdict).unwrap();
        assert!(line.starts_with("the drain ended at its bound") && line.contains("node-9"), "{line}");
        assert!(line.ends_with(" and 290 more") && !line.contains('\n') && line.len() < 2000, "{line}");
    }
}
