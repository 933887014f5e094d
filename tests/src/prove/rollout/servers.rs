//! `cargo xtask prove servers`: 20 drains under load of each server, told what it can be told.

use std::{io::Write, thread};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use super::Plan;
use crate::{ServerKind, prove::Record};

const ROUNDS: u64 = 20;
const RECORD: &str = "servers.jsonl";
const SERVERS: [(ServerKind, &str); 4] = [
    (ServerKind::Envoy, "envoy"),
    (ServerKind::SwitchedHaProxy, "haproxy"),
    (ServerKind::NewHaProxy, "haproxy-3.0"),
    (ServerKind::Nginx, "nginx"),
];

/// Runs the rounds that the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a round cannot be run or shows nothing, or a connection was lost.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::asked_for(RECORD, arguments)?;
    for number in 1..=ROUNDS {
        let due: Vec<_> = SERVERS.into_iter().filter(|(_, name)| !has(&record, number, name)).collect();
        let results: Vec<Result<Value>> = thread::scope(|scope| {
            let running: Vec<_> = due.into_iter().map(|server| scope.spawn(move || round(number, server))).collect();
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

fn round(number: u64, (server, name): (ServerKind, &str)) -> Result<Value> {
    let plan = Plan { server, ..Plan::full(true) };
    let round = plan.run()?;
    round.check(&plan).with_context(|| name.to_owned())?;
    let mut line = round.to_json(usize::try_from(number)?, &plan);
    if let Some(fields) = line.as_object_mut() {
        fields.insert("server".to_owned(), json!(name));
    }
    Ok(line)
}

fn of<'a>(record: &'a Record, name: &'a str) -> impl Iterator<Item = &'a Value> {
    record.lines().iter().filter(move |line| line.get("server").and_then(Value::as_str) == Some(name))
}

fn has(record: &Record, number: u64, name: &str) -> bool {
    of(record, name).any(|line| line.get("round").and_then(Value::as_u64) == Some(number))
}

fn sum_up(record: &Record) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{:<12}{:>8}{:>8}{:>10}{:>8}{:>18}", "", "rounds", "tried", "refused", "reset", "lost otherwise")?;
    let mut lost = 0;
    for (_, name) in SERVERS {
        let sum = |key: &str| -> u64 { of(record, name).filter_map(|line| line.get(key)?.as_u64()).sum() };
        let [tried, refused, reset, otherwise] = ["tried", "refused", "reset", "lostOtherwise"].map(sum);
        let rounds = of(record, name).count();
        writeln!(output, "{name:<12}{rounds:>8}{tried:>8}{refused:>10}{reset:>8}{otherwise:>18}")?;
        lost += refused + reset + otherwise;
    }
    ensure!(lost == 0, "{lost} connections were lost: see {}", record.path().display());
    Ok(())
}
