//! How long a drain takes in a calm cluster: nothing but the withdrawal happens. The target is the bound of `settled`:
//! `watchLag` + 2·`syncTime` + `minSync` + 300 ms, 7.3 s with the defaults, as the median.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{
    AgentConfig,
    kubernetes::{ClusterConfig, Mode, Scene},
};

const DRAINS: usize = 30;
const HOOK: Duration = Duration::from_mins(1);

pub(super) fn measure() -> Result<()> {
    let mut report = Report::default();
    let mut reasons = BTreeMap::<String, usize>::new();
    for (mode, key) in [(Mode::Nftables, "nftables"), (Mode::Iptables, "iptables")] {
        let scene = Scene::up(&ClusterConfig { mode, ..ClusterConfig::default() }, |service| service)?;
        let mut ended = Distribution::default();
        for number in 0..DRAINS {
            let workload = scene.workload(0, format!("drains-{number}"), AgentConfig::default())?;
            let stopping = workload.delete()?;
            let deleted_at = stopping.deleted_at;
            let drained = stopping.finish(HOOK)?;
            ensure!(["synced", "routed-away"].contains(&drained.reason()), "not calm: {}", drained.verdict);
            *reasons.entry(drained.reason().to_owned()).or_default() += 1;
            ended.add(drained.at.saturating_sub(deleted_at).cast_signed());
        }
        report.row(key, format!("from the Pod's deletion to the hook's end, {key} mode"), ended);
    }
    report.publish("calm-drain", &json!({ "targetMedianMs": 7300, "reasons": reasons, "clock": "CLOCK_MONOTONIC" }))
}
