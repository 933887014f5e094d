//! `cargo xtask prove replacement`: rounds in both modes until 20,000 connections were tried with the hook, and one round of
//! each mode without it.

use std::{io::Write, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Plan;
use crate::{kubernetes::Mode, prove::Record};

const CONNECTIONS: u64 = 20_000;
const RECORD: &str = "replacement.jsonl";

/// Runs the rounds that the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a round cannot be run, a connection was lost with the hook, or none without it.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    for mode in Mode::ALL {
        let plan = |hook| Plan { mode, hook, per_second: 60, pause: Duration::from_secs(1) };
        if of(&record, mode, false).is_empty() {
            round(&mut record, 1, &plan(false))?;
        }
        while sum(&of(&record, mode, true), "tried") < CONNECTIONS {
            let number = of(&record, mode, true).len() + 1;
            round(&mut record, number, &plan(true))?;
        }
    }
    sum_up(&record)
}

fn round(record: &mut Record, number: usize, plan: &Plan) -> Result<()> {
    let round = plan.run().with_context(|| format!("round {number} in {} mode", plan.mode.name()))?;
    let line = round.to_json(number, plan);
    eprintln!("{line}");
    round.check(plan)?;
    record.add(line)
}

fn of(record: &Record, mode: Mode, hook: bool) -> Vec<Value> {
    let wanted = |line: &&Value| {
        line.get("mode").and_then(Value::as_str) == Some(mode.name())
            && line.get("hook").and_then(Value::as_bool) == Some(hook)
    };
    record.lines().iter().filter(wanted).cloned().collect()
}

fn sum(lines: &[Value], key: &str) -> u64 {
    lines.iter().filter_map(|line| line.get(key)?.as_u64()).sum()
}

fn sum_up(record: &Record) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{:<26}{:>8}{:>8}{:>10}{:>8}{:>18}", "", "rounds", "tried", "refused", "reset", "lost otherwise")?;
    for mode in Mode::ALL {
        for (hook, name) in [(true, "with the hook"), (false, "without it")] {
            let lines = of(record, mode, hook);
            let [tried, refused, reset, otherwise] =
                ["tried", "refused", "reset", "lostOtherwise"].map(|key| sum(&lines, key));
            let name = format!("{name}, {}", mode.name());
            writeln!(output, "{name:<26}{:>8}{tried:>8}{refused:>10}{reset:>8}{otherwise:>18}", lines.len())?;
            let lost = refused + reset + otherwise;
            if hook {
                ensure!(lost == 0, "{lost} connections were lost with the hook: see {}", record.path().display());
            } else {
                ensure!(lost > 0, "nothing was lost without the hook: a loss would not be seen");
            }
        }
    }
    Ok(())
}
