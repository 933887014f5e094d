//! `cargo xtask prove fence-disrupted`: the fence disturbed in each way, in each mode, in the middle of a hundred drains.

use std::io::Write;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::disrupted::{How, Outcome, drain};
use crate::{
    kubernetes::{ClusterConfig, Mode, Scene},
    prove::Record,
};

const RECORD: &str = "fence-disrupted.jsonl";
/// Drains at once, of each way and mode: 102 of all.
const DRAINS: usize = 17;

/// Runs what the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When it cannot be run, a drain ended early, or a verdict does not name what it lacked.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    let mut output = std::io::stdout().lock();
    for (how, mode) in How::ALL.into_iter().flat_map(|how| Mode::ALL.map(|mode| (how, mode))) {
        let of = |line: &&Value| {
            let is = |key: &str, word: &str| line.get(key).and_then(Value::as_str) == Some(word);
            is("fence", how.name()) && is("mode", mode.name())
        };
        if !record.lines().iter().any(|line| of(&line)) {
            let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
            for outcome in drain(&scene, how, DRAINS)? {
                outcome.check()?;
                record.add(line(how, mode, &outcome))?;
            }
        }
        let lines: Vec<_> = record.lines().iter().filter(of).collect();
        ensure!(lines.len() == DRAINS, "{} has {} drains of {}", RECORD, lines.len(), DRAINS);
        let ended =
            |reason: &str| lines.iter().filter(|line| line.get("reason").is_some_and(|is| is == reason)).count();
        let counts =
            ["routed-away", "synced", "unverified", "bound"].map(|reason| format!("{} {reason}", ended(reason)));
        writeln!(output, "{:<12}{:<10}{DRAINS} drains, none early: {}", how.name(), mode.name(), counts.join(", "))?;
    }
    Ok(())
}

fn line(how: How, mode: Mode, outcome: &Outcome) -> Value {
    let verdict = &outcome.ended.verdict;
    json!({
        "fence": how.name(), "mode": mode.name(), "reason": outcome.ended.reason(),
        "hookMs": verdict.get("durationMs"), "notObserved": verdict.get("notObserved"),
        "nodesThatStillLedToThePod": outcome.routed,
    })
}
