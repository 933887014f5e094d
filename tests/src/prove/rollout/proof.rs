//! `cargo xtask prove rollout`: 20 rounds with the hook, and the same without it.

use std::{io::Write, thread};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::Plan;
use crate::prove::Record;

const ROUNDS: usize = 20;
/// The promise speaks of so many connections with the hook.
const CONNECTIONS: u64 = 5_000;
const RECORD: &str = "rollout.jsonl";

/// Runs the rounds that the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a round cannot be run, a connection was lost with the hook, or none without it.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    for number in 1..=ROUNDS {
        // Side by side: each has its own world, and the machine is idle but for them.
        let plans: Vec<Plan> =
            [true, false].into_iter().filter(|hook| !has(&record, number, *hook)).map(Plan::full).collect();
        let results: Vec<Result<Value>> = thread::scope(|scope| {
            let running: Vec<_> = plans.iter().map(|plan| scope.spawn(move || round(number, plan))).collect();
            running
                .into_iter()
                .map(|round| round.join().unwrap_or_else(|_| Err(anyhow!("the round panicked"))))
                .collect()
        });
        for result in results {
            let line = result.with_context(|| format!("round {number}"))?;
            eprintln!("{line}");
            record.add(line)?;
        }
    }
    sum_up(&record)
}

fn round(number: usize, plan: &Plan) -> Result<Value> {
    let round = plan.run()?;
    round.check(plan)?;
    Ok(round.to_json(number, plan))
}

fn has(record: &Record, number: usize, hook: bool) -> bool {
    record.lines().iter().any(|line| {
        line.get("round").and_then(Value::as_u64) == u64::try_from(number).ok()
            && line.get("hook").and_then(Value::as_bool) == Some(hook)
    })
}

fn sum_up(record: &Record) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{:<16}{:>8}{:>8}{:>10}{:>8}{:>18}", "", "rounds", "tried", "refused", "reset", "lost otherwise")?;
    let mut lost = [0, 0];
    let mut tried = [0, 0];
    for (index, hook) in [true, false].into_iter().enumerate() {
        let rounds: Vec<&Value> =
            record.lines().iter().filter(|line| line.get("hook").and_then(Value::as_bool) == Some(hook)).collect();
        let sum = |key: &str| -> u64 { rounds.iter().filter_map(|line| line.get(key)?.as_u64()).sum() };
        let [refused, reset, otherwise] = ["refused", "reset", "lostOtherwise"].map(sum);
        let name = if hook { "with the hook" } else { "without it" };
        writeln!(output, "{name:<16}{:>8}{:>8}{refused:>10}{reset:>8}{otherwise:>18}", rounds.len(), sum("tried"))?;
        if let (Some(lost), Some(tried)) = (lost.get_mut(index), tried.get_mut(index)) {
            (*lost, *tried) = (refused + reset + otherwise, sum("tried"));
        }
        if !hook {
            let without_loss =
                rounds.iter().filter(|line| line.get("refused").and_then(Value::as_u64) == Some(0)).count();
            ensure!(without_loss == 0, "{without_loss} rounds without the hook lost nothing: a loss would not be seen");
        }
    }
    let [with_hook, _] = lost;
    let [tried, _] = tried;
    ensure!(with_hook == 0, "{with_hook} connections were lost with the hook: see {}", record.path().display());
    ensure!(tried >= CONNECTIONS, "{tried} connections were tried with the hook, the promise speaks of {CONNECTIONS}");
    Ok(())
}
