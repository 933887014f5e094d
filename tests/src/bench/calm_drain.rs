//! How long a drain takes in a calm cluster: nothing but the withdrawal happens. The target is the bound of `settled`:
//! `watchLag` + 2·`syncTime` + `minSync` + 300 ms, 7.3 s with the defaults, as the median; with a fence 3 s.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Result, anyhow, ensure};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{
    AgentConfig,
    kubernetes::{ClusterConfig, Fence, Mode, Scene},
};

const DRAINS: usize = 30;
const HOOK: Duration = Duration::from_mins(1);

/// What each drain of a mode took, and its reason.
type Drains = Vec<(i64, String)>;

/// Without a fence and with one.
const FENCES: [bool; 2] = [false, true];

pub(super) fn measure() -> Result<()> {
    // Side by side: a drain waits nearly all of its time.
    let measured = thread::scope(|scope| {
        let running = Mode::ALL.map(|mode| scope.spawn(move || drains(mode)));
        running.map(|mode| mode.join().unwrap_or_else(|_panic| Err(anyhow!("a drain panicked"))))
    });
    let mut report = Report::default();
    let mut reasons = BTreeMap::<String, BTreeMap<&str, usize>>::new();
    for (mode, drains) in Mode::ALL.into_iter().zip(measured) {
        for (fence, drains) in FENCES.into_iter().zip(drains?) {
            let name = name(mode, fence);
            let mut took = Distribution::default();
            for (time, reason) in drains {
                took.add(time);
                *reasons.entry(reason).or_default().entry(name).or_default() += 1;
            }
            let with = if fence { "with a fence" } else { "without a fence" };
            let words = format!("from the Pod's deletion to the hook's end, {} mode, {with}", mode.name());
            report.row(name, words, took);
        }
    }
    let targets = json!({ "withoutFence": 7300, "withFence": 3000 });
    report.publish("calm-drain", &json!({ "targetMedianMs": targets, "reasons": reasons, "clock": "CLOCK_MONOTONIC" }))
}

fn name(mode: Mode, fence: bool) -> &'static str {
    match (mode, fence) {
        (Mode::Nftables, false) => "nftables",
        (Mode::Nftables, true) => "nftables-fence",
        (Mode::Iptables, false) => "iptables",
        (Mode::Iptables, true) => "iptables-fence",
    }
}

fn drains(mode: Mode) -> Result<Vec<Drains>> {
    let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
    let fence = Fence::start(&scene.cluster, 2, "fence", &scene.cluster.fence_access("fence")?)?;
    FENCES
        .into_iter()
        .map(|with| (0..DRAINS).map(|number| drain(&scene, with.then_some(&fence), number)).collect())
        .collect()
}

fn drain(scene: &Scene, fence: Option<&Fence>, number: usize) -> Result<(i64, String)> {
    let config = fence.map_or_else(AgentConfig::default, |fence| fence.give_to(AgentConfig::default()));
    let name = if fence.is_some() { "fenced" } else { "drains" };
    let workload = scene.workload(0, format!("{name}-{number}"), config)?;
    let stopping = workload.delete()?;
    let deleted_at = stopping.deleted_at;
    let ended = stopping.finish(HOOK)?;
    ensure!(ended.by_evidence_or_wait(), "not calm: {}", ended.verdict);
    Ok((ended.at.saturating_sub(deleted_at).cast_signed(), ended.reason().to_owned()))
}
