//! How long an interface that appears stays unwatched.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{Agent, AgentConfig, Pair, clock::monotonic_now, tcx::programs_on, wait::await_condition};

const INTERFACES: usize = 100;
const SOON: Duration = Duration::from_secs(10);

pub(super) fn measure() -> Result<()> {
    let pair = Pair::new()?;
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "10s")
        .env("LASTSYN_DRAIN_MAX_WAIT", "600s")
        .env("LASTSYN_LISTENERS_WATCH", "[80]");
    let agent = Agent::start(&pair.pod, config)?;
    let mut report = Report::default();
    report.row("atRest", "from the order to bring an interface up to the program on it, at rest", appear(&pair)?);
    let call = agent.drain()?;
    await_condition("the drain", SOON, || {
        agent.status().is_ok_and(|status| status.get("state").is_some_and(|state| state == "draining"))
    })?;
    let draining = appear(&pair)?;
    ensure!(call.answered()?.is_none(), "the drain did not last as long as the measurement");
    report.row("draining", "the same in a drain", draining);
    report.publish("new-interface", &json!({ "upTo": "the program is seen in the kernel", "clock": "CLOCK_MONOTONIC" }))
}

/// One interface after the other. Each is gone before the next one.
fn appear(pair: &Pair) -> Result<Distribution> {
    let mut times = Distribution::default();
    for number in 0..INTERFACES {
        let name = format!("new{number}");
        pair.pod.ip(&format!("link add {name} type veth peer name {name}p netns {}\n", pair.client.name()))?;
        pair.client.ip(&format!("link set {name}p up\n"))?;
        // The kernel brings it up somewhat later, so that the figure is the upper one.
        let ordered_at = monotonic_now();
        pair.pod.ip(&format!("link set {name} up\n"))?;
        let watched_at = await_condition("the program on a new interface", SOON, || {
            let looked_at = monotonic_now();
            programs_on(&pair.pod, &name).is_ok_and(|programs| !programs.is_empty()).then_some(looked_at)
        })?;
        times.add(watched_at.saturating_sub(ordered_at).cast_signed());
        pair.pod.ip(&format!("link delete {name}\n"))?;
    }
    Ok(times)
}
