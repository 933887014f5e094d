//! A flood of SYNs into the watched port, as fast as the machine sends them, from before a drain until after its end: the
//! agent lives, answers at the bound, does not grow, and counts every one.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;

use super::{figures::Figures, process::memory};
use crate::{
    AgentConfig, Counted, Pair, Server, ServerConfig,
    agent::Counts,
    await_condition,
    clock::monotonic_now,
    counted::PORT,
    counters::interface_counters,
    pair::INTERFACE,
    raw::{Segment, Sender},
};

const BOUND: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(30);
/// Before the memory is first read: what a first SYN makes the agent set up is there then.
const WARM: u64 = 100_000;

pub(super) fn measure() -> Result<()> {
    let config = AgentConfig::default().env("LASTSYN_DRAIN_MAX_WAIT", format!("{}s", BOUND.as_secs()));
    let counted = Counted::with(Pair::new()?, config)?;
    let _server = Server::start(&counted.pair.pod, ServerConfig::default())?;
    let before = interface_counters(&counted.pair.client, INTERFACE)?;
    let stop = AtomicBool::new(false);
    let (sent, took, grown, late) = thread::scope(|scope| {
        let flood = scope.spawn(|| send_until(&counted.pair, &stop));
        let drained = drain(&counted);
        stop.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap_or_else(|_panic| Err(anyhow!("the sender panicked")))?;
        let (grown, late) = drained?;
        anyhow::Ok((sent.0, sent.1, grown, late))
    })?;
    let unsent = interface_counters(&counted.pair.client, INTERFACE)?.unsent - before.unsent;
    let arrived = sent - unsent;
    let of_now = await_condition("the count of all", SOON, || {
        let [v4, v6] = counted.so_far().ok()?;
        (v4.plus(v6).sum() >= arrived).then_some(v4.plus(v6))
    })?;
    let Counts { new, retransmit, .. } = of_now;
    ensure!(of_now.sum() == arrived, "{} SYNs were counted, and {arrived} arrived: {of_now:?}", of_now.sum());
    ensure!(new + retransmit == arrived, "SYNs to an open listener are of other classes: {of_now:?}");
    let mut figures = Figures::default();
    figures.add("SYNs a second that reached the pod", as_f64(arrived) / took.as_secs_f64(), "", None);
    figures.add(
        "SYNs that reached it and were not counted, or counted twice",
        as_f64(arrived.abs_diff(of_now.sum())),
        "",
        Some(0.0),
    );
    figures.add("memory that the agent grew by in the drain (`VmRSS`)", grown, "MiB", Some(1.0));
    figures.add("the answer after the call and the bound", late, "ms", None);
    figures.publish("flood", &json!({ "boundSeconds": BOUND.as_secs(), "sent": sent, "arrived": arrived }))
}

/// By how much the agent grew in a drain, in MiB, and how late it was answered, in milliseconds.
fn drain(counted: &Counted) -> Result<(f64, f64)> {
    await_condition("the flood", SOON, || counted.so_far().is_ok_and(|[v4, _]| v4.sum() >= WARM))?;
    let process = counted.agent.process();
    let before = memory(process, "VmRSS")?;
    let answer = counted.agent.drain()?.wait(BOUND + SOON)?;
    let after = memory(process, "VmRSS")?;
    let reason = answer.verdict.get("reason").and_then(serde_json::Value::as_str);
    ensure!(reason == Some("bound"), "the verdict was {}", answer.verdict);
    let due = answer.called_at + u64::try_from(BOUND.as_nanos())?;
    Ok((as_f64(after.saturating_sub(before)) / 1024.0, as_f64(answer.answered_at.saturating_sub(due)) / 1e6))
}

/// How many were sent, and in what time.
fn send_until(pair: &Pair, stop: &AtomicBool) -> Result<(u64, Duration)> {
    let sender = Sender::open(&pair.client, INTERFACE)?;
    let target = *pair.targets(PORT).first().context("a target")?;
    let began_at = monotonic_now();
    let mut sent = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        // Addresses and ports go round, so that most SYNs are of a flow that had none.
        let source =
            Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + u32::try_from(sent / 60_000 % 65_536)?);
        let port = u16::try_from(1_024 + sent % 60_000)?;
        let source = SocketAddr::from((source, port));
        sender.send(&Segment { sequence: u32::from(port), ..pair.syn(source, target) })?;
        sent += 1;
    }
    Ok((sent, Duration::from_nanos(monotonic_now() - began_at)))
}

#[expect(clippy::cast_precision_loss, reason = "counts of less than a billion")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
