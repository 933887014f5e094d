//! A node whose kube-proxy stands still when a pod is withdrawn, and whose client tries again after the quiet period: only
//! a drain that asks the nodes keeps the server for it. `cargo xtask prove frozen-node` shows it with full numbers.

use std::{
    io::Write,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{
    AgentConfig, Attempt, Outcome, Summary, connect_once,
    kubernetes::{ClusterConfig, Ended, Mode, PORT, STAYS, Scene, ServiceKind},
    prove::{Record, wait_until},
};

const RUNS: usize = 30;
const RECORD: &str = "frozen-node.jsonl";
/// From the hook's call until the client tries again. Longer than the quiet period.
const PAUSE: Duration = Duration::from_secs(3);
/// Connections that it tries then.
const CONNECTIONS: usize = 72;
/// For a connection in a lab.
const SOON: Duration = Duration::from_secs(5);
/// Longer than the longest drain.
const HOOK: Duration = Duration::from_mins(1);

/// What came of a drain.
#[derive(Clone, Debug)]
pub struct Round {
    /// The connections from the node that stood still, tried after the pause.
    pub attempts: Vec<Attempt>,
    /// Whether the node's rules still led to the pod when the first of them was tried.
    pub routed: bool,
    /// How the hook ended.
    pub ended: Ended,
}

/// A new cluster.
///
/// # Errors
///
/// When it does not come up.
pub fn up(mode: Mode) -> Result<Scene> {
    Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service.kind(ServiceKind::NodePort))
}

/// One drain of a new pod, with the agent's routing check on or off.
///
/// # Errors
///
/// When it does not go as planned. Lost connections are no error: they are the result.
pub fn drain(scene: &Scene, name: &str, routing: bool) -> Result<Round> {
    drain_with(scene, name, AgentConfig::default().env("LASTSYN_ROUTING_ENABLED", routing.to_string()))
}

/// The same with any configuration of the agent.
///
/// # Errors
///
/// When it does not go as planned.
pub fn drain_with(scene: &Scene, name: &str, config: AgentConfig) -> Result<Round> {
    let workload = scene.workload(0, name, config)?;
    let node = scene.cluster.nodes().last().context("a cluster has nodes")?;

    node.proxy().freeze()?;
    let drained = thread::scope(|scope| {
        let stopping = workload.delete()?;
        let called_at = stopping.called_at;
        let ending = scope.spawn(|| stopping.finish(HOOK));
        let tried = (|| {
            wait_until(called_at, PAUSE)?;
            let routed = node.routes_to(workload.pod.endpoints(PORT)[0])?;
            let targets = scene.service.cluster().into_iter().chain(scene.service.on(node));
            let attempts: Vec<Attempt> =
                targets.cycle().take(CONNECTIONS).map(|target| connect_once(node.host(), target, SOON)).collect();
            anyhow::Ok((attempts, routed))
        })();
        node.proxy().thaw()?;
        let ended = ending.join().unwrap_or_else(|_panic| Err(anyhow!("the drain's thread panicked")))?;
        let (attempts, routed) = tried?;
        Ok(Round { attempts, routed, ended })
    });
    if drained.is_err() {
        node.proxy().thaw()?;
    }
    drained
}

// === impl Round ===

impl Round {
    /// Its connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// Checks that the round was what it is to be: the node's rules led to the withdrawn pod.
    ///
    /// # Errors
    ///
    /// When they did not: such a round shows nothing.
    pub fn check(&self) -> Result<()> {
        ensure!(self.routed, "the node that stood still has heard of the withdrawal: the round shows nothing");
        ensure!(self.attempts.len() == CONNECTIONS, "{}", self.summary());
        Ok(())
    }

    fn to_json(&self, number: usize, mode: Mode, routing: bool) -> Value {
        let summary = self.summary();
        let to_old =
            self.attempts.iter().filter(|attempt| !matches!(&attempt.outcome, Outcome::Served { by } if by == STAYS));
        json!({
            "round": number, "mode": mode.name(), "routing": routing,
            "tried": summary.tried, "refused": summary.refused, "lost": summary.lost(),
            "toTheWithdrawn": to_old.count(),
            "reason": self.ended.reason(),
            "hookMs": u64::try_from(self.ended.took.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

/// Runs the drains that the record does not have yet, and sums up. With `--again` it forgets the record first.
///
/// # Errors
///
/// When a drain cannot be run, a connection was lost with the routing check on, or none with it off.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<()> {
    let record = Record::asked_for(RECORD, arguments)?;
    // Side by side: each mode has a cluster of its own.
    let record = Mutex::new(record);
    thread::scope(|scope| {
        let running = Mode::ALL.map(|mode| {
            scope.spawn({
                let record = &record;
                move || complete(record, mode)
            })
        });
        running.into_iter().try_for_each(|mode| mode.join().unwrap_or_else(|_panic| Err(anyhow!("a drain panicked"))))
    })?;
    sum_up(&record.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Runs the drains of a mode that the record does not have yet.
fn complete(record: &Mutex<Record>, mode: Mode) -> Result<()> {
    let lock = || record.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<_> = {
        let record = lock();
        (1..=RUNS)
            .flat_map(|number| [(number, true), (number, false)])
            .filter(|&(number, routing)| !has(&record, number, mode, routing))
            .collect()
    };
    if missing.is_empty() {
        return Ok(());
    }
    let scene = up(mode)?;
    for (index, (number, routing)) in missing.into_iter().enumerate() {
        let round = drain(&scene, &format!("drains-{index}"), routing)?;
        round.check()?;
        let line = round.to_json(number, mode, routing);
        eprintln!("{line}");
        lock().add(line)?;
    }
    Ok(())
}

fn has(record: &Record, number: usize, mode: Mode, routing: bool) -> bool {
    record.lines().iter().any(|line| {
        line.get("round").and_then(Value::as_u64) == u64::try_from(number).ok()
            && line.get("mode").and_then(Value::as_str) == Some(mode.name())
            && line.get("routing").and_then(Value::as_bool) == Some(routing)
    })
}

fn sum_up(record: &Record) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{:<24}{:>8}{:>8}{:>10}{:>8}", "", "drains", "tried", "refused", "lost")?;
    for mode in Mode::ALL {
        for (routing, name) in [(true, "routing on"), (false, "quiet alone")] {
            let of = |line: &&Value| {
                line.get("mode").and_then(Value::as_str) == Some(mode.name())
                    && line.get("routing").and_then(Value::as_bool) == Some(routing)
            };
            let lines: Vec<_> = record.lines().iter().filter(of).collect();
            let sum = |key: &str| -> u64 { lines.iter().filter_map(|line| line.get(key)?.as_u64()).sum() };
            let name = format!("{name}, {}", mode.name());
            let (tried, refused, lost) = (sum("tried"), sum("refused"), sum("lost"));
            writeln!(output, "{name:<24}{:>8}{tried:>8}{refused:>10}{lost:>8}", lines.len())?;
            if routing {
                ensure!(lost == 0, "{lost} connections were lost: see {}", record.path().display());
            } else {
                ensure!(refused > 0, "nothing was refused with quiet alone: a loss would not be seen");
            }
        }
    }
    Ok(())
}
