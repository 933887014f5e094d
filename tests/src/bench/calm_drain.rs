//! How long a drain takes in a calm cluster: nothing but the withdrawal happens. The target is the bound of `settled`:
//! `watchLag` + 2·`syncTime` + `minSync` + 300 ms, 7.3 s with the defaults, as the median.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Result, anyhow, ensure};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{
    AgentConfig,
    kubernetes::{ClusterConfig, Mode, Scene},
};

const DRAINS: usize = 30;
const HOOK: Duration = Duration::from_mins(1);

/// What each drain of a mode took, and its reason.
type Drains = Vec<(i64, String)>;

pub(super) fn measure() -> Result<()> {
    // Side by side: a drain waits nearly all of its time.
    let measured = thread::scope(|scope| {
        let running = Mode::ALL.map(|mode| scope.spawn(move || drains(mode)));
        running.map(|mode| mode.join().unwrap_or_else(|_panic| Err(anyhow!("a drain panicked"))))
    });
    let mut report = Report::default();
    let mut reasons = BTreeMap::<String, BTreeMap<&str, usize>>::new();
    for (mode, drains) in Mode::ALL.into_iter().zip(measured) {
        let mut took = Distribution::default();
        for (time, reason) in drains? {
            took.add(time);
            *reasons.entry(reason).or_default().entry(mode.name()).or_default() += 1;
        }
        report.row(mode.name(), format!("from the Pod's deletion to the hook's end, {} mode", mode.name()), took);
    }
    report.publish("calm-drain", &json!({ "targetMedianMs": 7300, "reasons": reasons, "clock": "CLOCK_MONOTONIC" }))
}

fn drains(mode: Mode) -> Result<Drains> {
    let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
    (0..DRAINS)
        .map(|number| {
            let workload = scene.workload(0, format!("drains-{number}"), AgentConfig::default())?;
            let stopping = workload.delete()?;
            let deleted_at = stopping.deleted_at;
            let ended = stopping.finish(HOOK)?;
            ensure!(ended.by_evidence_or_wait(), "not calm: {}", ended.verdict);
            Ok((ended.at.saturating_sub(deleted_at).cast_signed(), ended.reason().to_owned()))
        })
        .collect()
}
