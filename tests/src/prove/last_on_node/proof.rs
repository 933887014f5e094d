//! `cargo xtask prove last-on-node`: five rounds in each mode.

use std::io::Write;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Plan;
use crate::{
    kubernetes::{Mode, Shutdown},
    prove::Record,
};

const ROUNDS: usize = 5;
const RECORD: &str = "last-on-node.jsonl";

/// Runs the rounds that the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a round cannot be run or shows nothing, or the agent lost a connection.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    for mode in Mode::ALL {
        let plan = Plan { mode, per_second: 50 };
        for number in (1..=ROUNDS).filter(|number| !has(&record, mode, *number)).collect::<Vec<_>>() {
            let round = plan.run().with_context(|| format!("round {number} in {} mode", mode.name()))?;
            round.check()?;
            let line = round.to_json(number, &plan);
            eprintln!("{line}");
            record.add(line)?;
        }
    }
    sum_up(&record)
}

fn of(record: &Record, mode: Mode) -> impl Iterator<Item = &Value> {
    record.lines().iter().filter(move |line| line.get("mode").and_then(Value::as_str) == Some(mode.name()))
}

fn has(record: &Record, mode: Mode, number: usize) -> bool {
    let wanted = u64::try_from(number).ok();
    of(record, mode).any(|line| line.get("round").and_then(Value::as_u64) == wanted)
}

fn sum_up(record: &Record) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{:<22}{:>8}{:>8}{:>28}{:>8}", "", "rounds", "tried", "at the node after deletion", "lost")?;
    for mode in Mode::ALL {
        for shutdown in Shutdown::ALL {
            let of_way = |key: &str| -> u64 {
                of(record, mode).filter_map(|line| line.get(shutdown.name())?.get(key)?.as_u64()).sum()
            };
            let [tried, after, lost] = ["tried", "triedAtTheNodeAfterDeletion", "lost"].map(of_way);
            let name = format!("{}, {}", shutdown.name(), mode.name());
            let rounds = of(record, mode).count();
            writeln!(output, "{name:<22}{rounds:>8}{tried:>8}{after:>28}{lost:>8}")?;
            let path = record.path().display();
            match shutdown {
                Shutdown::Agent => ensure!(lost == 0, "{lost} connections were lost with the agent: see {path}"),
                Shutdown::Published => ensure!(lost > 0, "nothing was lost: a loss would not be seen"),
            }
        }
    }
    Ok(())
}
