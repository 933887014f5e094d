//! The proof: drains beside a node that stands still, and rounds beside an adversary.

use std::{
    io::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::{
    adversary, frozen,
    round::{Bed, Outcome},
};
use crate::{
    kubernetes::{Cluster, ClusterConfig, Fence, Mode},
    prove::{Record, frozen_node},
};

const RECORD: &str = "fence.jsonl";
/// Drains beside a node that stands still, of each mode.
const DRAINS: usize = 25;
/// Rounds beside the adversary, of each mode.
const ROUNDS: u16 = 500;
/// Rounds at the same time.
const BEDS: u8 = 12;

/// Runs what the record does not have yet, and sums up. With `--again` it forgets the record first; `--rounds N` of each
/// mode.
///
/// # Errors
///
/// When something cannot be run, a connection was lost, a drain ended otherwise than `routed-away`, or a node was called
/// confirmed while its rules led to what was withdrawn.
pub fn run(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let mut record = Record::open(RECORD)?;
    let mut rounds = ROUNDS;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--again" => record.clear()?,
            "--rounds" => rounds = arguments.next().context("--rounds needs a number")?.parse()?,
            other => bail!(
                "unknown argument `{other}`; there are --again, which forgets {}, and --rounds N",
                record.path().display()
            ),
        }
    }
    let record = Mutex::new(record);
    for mode in Mode::ALL {
        drains(&record, mode)?;
        beside_an_adversary(&record, mode, rounds)?;
    }
    sum_up(&record.into_inner().unwrap_or_else(PoisonError::into_inner), rounds)
}

/// How the agent, the fence and this program were built.
fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn count(record: &Record, what: &str, mode: Mode) -> usize {
    let of = |line: &&Value| line["what"] == what && line["mode"] == mode.name();
    record.lines().iter().filter(of).count()
}

fn drains(record: &Mutex<Record>, mode: Mode) -> Result<()> {
    let lock = || record.lock().unwrap_or_else(PoisonError::into_inner);
    let done = count(&lock(), "drain", mode);
    if done >= DRAINS {
        return Ok(());
    }
    let scene = frozen_node::up(mode)?;
    let fence = Fence::start(&scene.cluster, 1, "fence", &scene.cluster.fence_access("fence")?)?;
    for number in done..DRAINS {
        let round = frozen(&scene, &fence, &format!("drains-{number}"))?;
        round.check()?;
        let summary = round.summary();
        let line = json!({
            "what": "drain", "mode": mode.name(), "build": build(), "tried": summary.tried, "lost": summary.lost(),
            "reason": round.ended.reason(), "hookMs": u64::try_from(round.ended.took.as_millis()).unwrap_or(u64::MAX),
        });
        eprintln!("{line}");
        lock().add(line)?;
    }
    Ok(())
}

fn beside_an_adversary(record: &Mutex<Record>, mode: Mode, rounds: u16) -> Result<()> {
    let lock = || record.lock().unwrap_or_else(PoisonError::into_inner);
    let done = count(&lock(), "round", mode);
    if done >= usize::from(rounds) {
        return Ok(());
    }
    let missing = usize::from(rounds) - done;
    let config = ClusterConfig { mode, watch_proxy_on: Some(2), ..ClusterConfig::default() };
    let cluster = Cluster::with(&config)?;
    let fence = Fence::start(&cluster, 1, "fence", &cluster.fence_access("fence")?)?;
    let end = AtomicBool::new(false);
    let add = |outcome: &Outcome| -> Result<()> {
        let line = json!({
            "what": "round", "mode": mode.name(), "build": build(), "stale": outcome.stale, "confirmed": outcome.confirmed,
            "wrong": outcome.wrong, "tookMs": outcome.took_ms,
        });
        eprintln!("{line}");
        lock().add(line)
    };
    thread::scope(|scope| {
        let wrongs = scope.spawn(|| adversary::harass(&cluster, 17 + done as u64, &end));
        let churn = scope.spawn(|| adversary::churn(&cluster, &end));
        let beds: Vec<_> = (0..BEDS)
            .map(|number| {
                let (cluster, fence, add) = (&cluster, &fence, &add);
                scope.spawn(move || -> Result<()> {
                    let bed = Bed::make(cluster, number)?;
                    let own =
                        missing / usize::from(BEDS) + usize::from(usize::from(number) < missing % usize::from(BEDS));
                    for round in 0..own {
                        let outcome = bed.round(cluster, fence, u16::try_from(round)?)?;
                        add(&outcome)?;
                        outcome.check()?;
                    }
                    Ok(())
                })
            })
            .collect();
        let outcomes: Vec<_> = beds.into_iter().map(thread::ScopedJoinHandle::join).collect();
        end.store(true, Ordering::Relaxed);
        let others = [wrongs.join(), churn.join()];
        outcomes
            .into_iter()
            .chain(others)
            .try_for_each(|outcome| outcome.unwrap_or_else(|_panic| Err(anyhow!("a thread panicked"))))
    })
}

fn sum_up(record: &Record, rounds: u16) -> Result<()> {
    let mut output = std::io::stdout().lock();
    for mode in Mode::ALL {
        let of = |what: &str| -> Vec<&Value> {
            record.lines().iter().filter(|line| line["what"] == what && line["mode"] == mode.name()).collect()
        };
        let sum = |lines: &[&Value], key: &str| -> u64 { lines.iter().filter_map(|line| line[key].as_u64()).sum() };
        let (drains, all) = (of("drain"), of("round"));
        let away = drains.iter().filter(|line| line["reason"] == "routed-away").count();
        let lost = sum(&drains, "lost");
        writeln!(
            output,
            "{}: {} drains beside a node that stood still: {} connections, {lost} lost, {away} routed-away",
            mode.name(),
            drains.len(),
            sum(&drains, "tried"),
        )?;
        let wrong: usize = all.iter().filter_map(|line| line["wrong"].as_array()).map(Vec::len).sum();
        let stale = sum(&all, "stale");
        writeln!(
            output,
            "{}: {} rounds beside an adversary: {} confirmations, {wrong} wrong; {stale} rules were stale when the fence was asked",
            mode.name(),
            all.len(),
            sum(&all, "confirmed"),
        )?;
        ensure!(lost == 0 && away == drains.len(), "see {}", record.path().display());
        ensure!(wrong == 0, "a node was called confirmed that was not: see {}", record.path().display());
        ensure!(
            all.len() < usize::from(rounds) || stale > 0,
            "no rule was stale: a wrong confirmation would not be seen"
        );
    }
    Ok(())
}
