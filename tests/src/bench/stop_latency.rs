//! How long the agent stays when nothing keeps it (S7).

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde_json::json;

use super::{distribution::Distribution, report::Report};
use crate::{
    Agent, AgentConfig, Pair, Server, ServerConfig,
    clock::monotonic_now,
    prove::{Dice, wait_until},
};

const STOPS: usize = 30;
/// From SIGTERM until the listener is closed, at most.
const OPEN: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(10);

pub(super) fn measure() -> Result<()> {
    let pair = Pair::new()?;
    let mut dice = Dice::seeded(1);
    let (mut at_rest, mut after_close) = (Distribution::default(), Distribution::default());
    for _ in 0..STOPS {
        let agent = Agent::start(&pair.pod, AgentConfig::default())?;
        let asked_at = monotonic_now();
        agent.terminate()?;
        at_rest.add(ended(&agent)?.saturating_sub(asked_at).cast_signed());
    }
    for _ in 0..STOPS {
        let server = Server::start(&pair.pod, ServerConfig::default())?;
        let agent = Agent::start(&pair.pod, AgentConfig::default())?;
        agent.terminate()?;
        wait_until(monotonic_now(), dice.within(OPEN))?;
        server.close()?;
        let closed_at = monotonic_now();
        after_close.add(ended(&agent)?.saturating_sub(closed_at).cast_signed());
    }
    let mut report = Report::default();
    report.row("atRest", "from SIGTERM to the agent's end, where nothing listens", at_rest);
    report.row("afterClose", "from the close of the last listener, after SIGTERM, to its end", after_close);
    report
        .publish("stop-latency", &json!({ "listenerOpenAtMostMs": OPEN.as_secs() * 1000, "clock": "CLOCK_MONOTONIC" }))
}

fn ended(agent: &Agent) -> Result<u64> {
    // It stays to be reaped by its owner.
    waitid(WaitId::Pid(agent.process().pid()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).context("the agent")?;
    let ended_at = monotonic_now();
    agent.wait(SOON)?;
    Ok(ended_at)
}
