//! `cargo xtask prove rolling-update`: 100 pods in each mode, with a surge of a quarter.

use std::io::Write;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Plan;
use crate::{kubernetes::Mode, prove::Record};

const PODS: usize = 100;
const RECORD: &str = "rolling-update.jsonl";
/// At least so many of a hundred drains end by evidence.
const BY_EVIDENCE: u64 = 95;

/// Runs what the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When an update cannot be run, too few of its drains ended by evidence, an agent at rest exchanged anything with the API
/// server, or a connection was lost.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    let mut output = std::io::stdout().lock();
    for mode in Mode::ALL {
        let is_it = |line: &&Value| line.get("mode").and_then(Value::as_str) == Some(mode.name());
        if !record.lines().iter().any(|line| is_it(&line)) {
            let plan = Plan { mode, pods: PODS, surge: PODS / 4, unrelated_writes: 2, per_second: 20 };
            let round = plan.run()?;
            eprintln!("{}", round.to_json(&plan));
            round.check(&plan)?;
            record.add(round.to_json(&plan))?;
        }
        let line = record.lines().iter().find(is_it).cloned().unwrap_or_default();
        let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let lost = number("/refused") + number("/reset") + number("/lostOtherwise");
        let (pods, by_evidence, at_rest) = (number("/pods"), number("/byEvidence"), number("/apiBytesAtRest"));
        writeln!(
            output,
            "{:<10}{by_evidence:>4} of {pods} by evidence, {:>6} ms and {:>8} bytes of the API at the median, {at_rest} at \
             rest, {lost} of {} connections lost",
            mode.name(),
            number("/hookMs/p50"),
            number("/apiBytesOfDrain/p50"),
            number("/tried"),
        )?;
        let path = record.path().display();
        ensure!(by_evidence * 100 >= pods * BY_EVIDENCE && pods > 0, "too few drains ended by evidence: see {path}");
        ensure!(at_rest == 0, "agents at rest exchanged {at_rest} bytes with the API server: see {path}");
        ensure!(lost == 0, "{lost} connections were lost: see {path}");
    }
    Ok(())
}
