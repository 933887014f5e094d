//! What the agent takes while nothing happens and in a drain, and how soon it is at work.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use serde_json::json;

use super::{
    distribution::Distribution,
    figures::Figures,
    process::{memory, processor_time},
};
use crate::{
    Agent, AgentConfig, HaProxy, PacedClient, Pair, agent::binary, await_condition, clock::monotonic_now,
    pair::INTERFACE, prove::wait_until, tcx::programs_on,
};

const STARTS: usize = 20;
/// From an agent's start until all is over that it does only then.
const SETTLED: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(30);
const DRAIN: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(20);
const MIB: f64 = 1024.0 * 1024.0;

pub(super) fn measure() -> Result<()> {
    let pair = Pair::new()?;
    let _server = HaProxy::start(&pair.pod, "a", &[80])?;
    let mut figures = Figures::default();
    starts(&pair, &mut figures)?;

    let config = AgentConfig::default().env("LASTSYN_DRAIN_MAX_WAIT", format!("{}s", DRAIN.as_secs()));
    let agent = Agent::start(&pair.pod, config)?;
    // What it does once after its start is not rest.
    wait_until(monotonic_now(), SETTLED)?;
    let (before, began_at) = (processor_time(agent.process())?, monotonic_now());
    wait_until(began_at, REST)?;
    let used = processor_time(agent.process())?.saturating_sub(before);
    let share = used.as_secs_f64() / Duration::from_nanos(monotonic_now() - began_at).as_secs_f64();
    figures.add("processor at rest", share * 100.0, "% of one", Some(0.1));
    figures.add("memory at rest (`VmRSS`)", mib(memory(agent.process(), "VmRSS")?), "MiB", Some(12.0));

    // New connections hold the drain to its bound.
    let client = PacedClient::start(&pair.client, pair.targets(80), 100)?;
    await_condition("the client's first answers", SOON, || client.so_far().served_in_all() > 0)?;
    let call = agent.drain()?;
    let before = processor_time(agent.process())?;
    let answer = call.wait(DRAIN + SOON)?;
    let used = processor_time(agent.process())?.saturating_sub(before);
    let share = used.as_secs_f64() / Duration::from_nanos(answer.answered_at - answer.called_at).as_secs_f64();
    figures.add("processor in a drain with 100 new connections a second", share * 100.0, "% of one", None);
    let most = mib(memory(agent.process(), "VmHWM")?);
    figures.add("most memory until the drain's end (`VmHWM`), no cluster watched", most, "MiB", Some(24.0));

    let size = fs::metadata(binary()?).context("the agent's program")?.len();
    #[expect(clippy::cast_precision_loss, reason = "a program of less than a petabyte")]
    figures.add("program, linked to the C library", size as f64 / MIB, "MiB", Some(8.0));
    figures.publish(
        "footprint",
        &json!({ "starts": STARTS, "restSeconds": REST.as_secs(), "drainSeconds": DRAIN.as_secs() }),
    )
}

/// From the start of the process, until the kernel shows the program on the interface and until the agent is ready.
fn starts(pair: &Pair, figures: &mut Figures) -> Result<()> {
    let (mut attached, mut ready) = (Distribution::default(), Distribution::default());
    for _ in 0..STARTS {
        let began_at = monotonic_now();
        let agent = Agent::spawn(&pair.pod, AgentConfig::default())?;
        await_condition("the program on the interface", SOON, || {
            programs_on(&pair.pod, INTERFACE).is_ok_and(|programs| !programs.is_empty())
        })?;
        let attached_at = monotonic_now();
        await_condition("the agent's readiness", SOON, || {
            agent.get("/readyz").is_ok_and(|answer| answer.status == 200)
        })?;
        let ready_at = monotonic_now();
        attached.add((attached_at - began_at).cast_signed());
        ready.add((ready_at - attached_at).cast_signed());
        agent.kill()?;
        await_condition("the interface without it", SOON, || {
            programs_on(&pair.pod, INTERFACE).is_ok_and(|programs| programs.is_empty())
        })?;
    }
    for (words, times, most) in
        [("start to attached", &attached, Some(100.0)), ("attached to ready, as seen by polling", &ready, None)]
    {
        let quantile = |part| times.quantile(part).context("nothing was measured");
        figures.add(format!("{words}, median of {STARTS}"), quantile(0.5)?, "ms", most);
        figures.add(format!("{words}, longest"), quantile(1.0)?, "ms", None);
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "less than a petabyte")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
