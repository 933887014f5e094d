//! One update.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use super::{
    churn::write_unrelated,
    fleet::{Drained, New, Old, start_new, start_old},
};
use crate::{
    Attempt, PacedClient, Summary,
    clock::monotonic_now,
    kubernetes::{ClusterConfig, Mode, Scene},
    prove::wait_until,
};

/// How long clients go on when the last pod has gone.
const GO_ON: Duration = Duration::from_secs(1);
/// How long all pods are at rest before the first is replaced, so that what they exchange in it would be seen.
const REST: Duration = Duration::from_secs(5);

/// How it is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The mode of the nodes.
    pub mode: Mode,
    /// How many pods.
    pub pods: usize,
    /// How many more there may be: so many are made, and as soon as they are ready so many are deleted, whether those
    /// before have ended or not. So does a Deployment, for which a pod that terminates is none any more.
    pub surge: usize,
    /// Writes per second of slices that list none of them.
    pub unrelated_writes: u32,
    /// Connections per second of each node's client, to each family in turn.
    pub per_second: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Round {
    /// Every connection.
    pub attempts: Vec<Attempt>,
    /// Every replaced pod.
    pub drained: Vec<Drained>,
    /// How many unrelated slices were written.
    pub written: u32,
    /// From the first wave's start to the last pod's end.
    pub took: Duration,
}

// === impl Plan ===

impl Plan {
    /// Runs it, in a cluster of its own.
    ///
    /// # Errors
    ///
    /// When it does not go as planned. Lost connections are no error: they are a result.
    pub fn run(&self) -> Result<Round> {
        let scene = Scene::up(&ClusterConfig { mode: self.mode, ..ClusterConfig::default() }, |service| service)?;
        let old = start_old(&scene, self.pods)?;
        let targets = scene.service.cluster().to_vec();
        let clients = scene
            .cluster
            .nodes()
            .iter()
            .map(|node| PacedClient::start_served(node.host(), targets.clone(), self.per_second))
            .collect::<Result<Vec<_>>>()?;
        let stop = AtomicBool::new(false);
        let (replaced, written) = thread::scope(|scope| {
            let churn = scope.spawn(|| write_unrelated(scene.cluster.api(), self.unrelated_writes, &stop));
            let replaced = self.replace(&scene, old);
            stop.store(true, Ordering::Relaxed);
            (replaced, churn.join().unwrap_or_else(|_panic| Err(anyhow!("the churn panicked"))))
        });
        // The new pods serve until the last client has stopped.
        let (drained, took, _serving) = replaced?;
        wait_until(monotonic_now(), GO_ON)?;
        let mut attempts = Vec::new();
        for client in clients {
            attempts.extend(client.stop()?);
        }
        Ok(Round { attempts, drained, written: written?, took })
    }

    fn replace(&self, scene: &Scene, old: Vec<Old>) -> Result<(Vec<Drained>, Duration, Vec<New>)> {
        wait_until(monotonic_now(), REST)?;
        let begun = monotonic_now();
        let mut old = old.into_iter();
        thread::scope(|scope| {
            let (mut ending, mut new) = (Vec::new(), Vec::new());
            while old.len() > 0 {
                let wave = self.surge.min(old.len()).max(1);
                new.extend(start_new(scene, new.len()..new.len() + wave)?);
                ending.extend(old.by_ref().take(wave).map(|old| scope.spawn(|| old.drain())));
            }
            let mut drained = Vec::new();
            for ended in ending {
                drained.push(ended.join().unwrap_or_else(|_panic| Err(anyhow!("a drain panicked")))?);
            }
            Ok((drained, Duration::from_nanos(monotonic_now().saturating_sub(begun)), new))
        })
    }
}

// === impl Round ===

impl Round {
    /// All connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// How many drains ended with a claim that every node sends no more.
    pub fn by_evidence(&self) -> usize {
        self.drained.iter().filter(|one| ["routed-away", "synced"].contains(&one.ended.reason())).count()
    }

    /// How many ended at the bound.
    pub fn at_the_bound(&self) -> usize {
        self.drained.iter().filter(|one| one.ended.reason() == "bound").count()
    }

    /// Bytes that the agents exchanged with the API server while none of them drained.
    pub fn bytes_at_rest(&self) -> u64 {
        self.drained.iter().map(|one| one.at_rest.bytes).sum()
    }

    /// Checks that the update was what it is to be.
    ///
    /// # Errors
    ///
    /// Naming what was missing: such an update shows nothing.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        ensure!(self.drained.len() == plan.pods, "{} of {} pods were replaced", self.drained.len(), plan.pods);
        ensure!(self.drained.iter().all(|one| one.in_drain.bytes > 0), "an agent drained without the API server");
        ensure!(self.drained.iter().all(|one| one.rested >= REST), "an agent was hardly at rest");
        let wanted = self.took.as_secs_f64() * f64::from(plan.unrelated_writes);
        ensure!(f64::from(self.written) >= wanted * 0.5, "only {} unrelated slices were written", self.written);
        let served = self.summary().served;
        let reached = (0..plan.pods).filter(|number| served.contains_key(&format!("new-{number}"))).count();
        ensure!(reached * 2 > plan.pods, "only {reached} of the new pods were reached");
        Ok(())
    }

    /// The round in one object.
    pub fn to_json(&self, plan: &Plan) -> Value {
        let summary = self.summary();
        let mut reasons = BTreeMap::<&str, usize>::new();
        for one in &self.drained {
            *reasons.entry(one.ended.reason()).or_default() += 1;
        }
        let mut not_observed = BTreeMap::<String, usize>::new();
        let entries = |one: &Drained| one.ended.verdict.get("notObserved").and_then(Value::as_array).cloned();
        for entry in self.drained.iter().filter_map(entries).flatten() {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            *not_observed.entry(format!("{}: {}", text("what"), text("why"))).or_default() += 1;
        }
        let of = |figure: fn(&Drained) -> u64| quantiles(self.drained.iter().map(figure).collect());
        json!({
            "mode": plan.mode.name(), "pods": plan.pods, "surge": plan.surge, "tookSeconds": self.took.as_secs(),
            "unrelatedWrites": self.written,
            "reasons": reasons, "notObserved": not_observed, "byEvidence": self.by_evidence(),
            "onlyWaitedOrByEvidence": self.drained.iter().filter(|one| one.ended.by_evidence_or_wait()).count(),
            "hookMs": of(|one| u64::try_from(one.ended.took.as_millis()).unwrap_or(u64::MAX)),
            "apiBytesOfDrain": of(|one| one.in_drain.bytes), "apiPacketsOfDrain": of(|one| one.in_drain.packets),
            "apiBytesAtRest": self.bytes_at_rest(),
            "podSecondsAtRest": self.drained.iter().map(|one| one.rested.as_secs()).sum::<u64>(),
            "tried": summary.tried, "refused": summary.refused, "reset": summary.reset,
            "lostOtherwise": summary.closed + summary.timed_out + summary.other,
        })
    }
}

/// By nearest rank.
fn quantiles(mut figures: Vec<u64>) -> Value {
    figures.sort_unstable();
    let of = |percent: usize| figures.get((figures.len() * percent).div_ceil(100).saturating_sub(1));
    json!({"min": of(0), "p50": of(50), "p90": of(90), "max": of(100)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_figures_that_were_measured() {
        assert_eq!(quantiles((1..=10).rev().collect()), json!({"min": 1, "p50": 5, "p90": 9, "max": 10}));
        assert_eq!(quantiles(vec![7]), json!({"min": 7, "p50": 7, "p90": 7, "max": 7}));
    }
}
