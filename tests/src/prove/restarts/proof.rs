//! `cargo xtask prove restarts`: 20 restarts in nftables mode with the hook, and two without it.

use std::io::Write;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Plan;
use crate::{kubernetes::Mode, prove::Record};

const RECORD: &str = "restarts.jsonl";

/// Runs what the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a restart cannot be run, a connection was lost with the hook, or none without it.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    let mut output = std::io::stdout().lock();
    for (hook, restarts) in [(true, 20), (false, 2)] {
        let plan = Plan { mode: Mode::Nftables, hook, restarts, per_second: 25 };
        let is_it = |line: &&Value| line.get("hook").and_then(Value::as_bool) == Some(hook);
        if !record.lines().iter().any(|line| is_it(&line)) {
            let round = plan.run()?;
            round.check_order()?;
            record.add(round.to_json(&plan))?;
        }
        let line = record.lines().iter().find(is_it).cloned().unwrap_or_default();
        let number = |key: &str| line.get(key).and_then(Value::as_u64).unwrap_or(0);
        let lost = number("refused") + number("reset") + number("lostOtherwise");
        let name = if hook { "with the hook" } else { "without it" };
        writeln!(output, "{name:<16}{:>4} restarts{:>8} tried{lost:>6} lost", number("restarts"), number("tried"))?;
        ensure!((lost == 0) == hook, "{lost} connections were lost {name}: see {}", record.path().display());
    }
    Ok(())
}
