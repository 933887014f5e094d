//! How late the hook is answered: against the last SYN and the quiet period, and against the bound. Beside it, how late a
//! server is that does nothing but wait: so much is the machine's, and the caller's.

use std::{
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde_json::json;

use super::{
    control::{ADDRESS, Control},
    distribution::Distribution,
    report::Report,
};
use crate::{
    Agent, AgentConfig, DrainCall, HaProxy, Host, PacedClient, Pair, Process,
    clock::monotonic_now,
    prove::{Dice, wait_until},
    wait::await_condition,
};

const QUIET: Duration = Duration::from_millis(500);
const BOUND: Duration = Duration::from_millis(700);
/// Pods that drain at the same time; each drain waits nearly always.
const LANES: u64 = 4;
const DRAINS: usize = 1_000;
const DRAINS_TO_THE_BOUND: usize = 100;
const SOON: Duration = Duration::from_secs(10);

/// What the drains of one lane, or of all, showed.
#[derive(Debug, Default)]
struct Lateness {
    /// Of the HTTP answer, at least: the SYN came just before the handshake was over.
    http_least: Distribution,
    /// Of the HTTP answer, at most: the SYN came when the client was told to connect.
    http_most: Distribution,
    /// Of the end of `lastsyn drain`, at most.
    process_most: Distribution,
    /// Of the HTTP answer after the bound, counted from the moment before the call.
    http_bound: Distribution,
    /// Of a server's answer that only waits, counted from the moment before the call.
    control: Distribution,
    /// The same as `http_bound` of the end of `lastsyn drain`, from before its start; it may join the drain later than the bound began.
    process_bound: Distribution,
}

pub(super) fn measure() -> Result<()> {
    let all = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|lane| scope.spawn(move || run(lane))).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or_else(|_panic| Err(anyhow!("a lane panicked")))).try_fold(
            Lateness::default(),
            |mut all, lane| {
                all.take(lane?);
                anyhow::Ok(all)
            },
        )
    })?;
    let mut report = Report::default();
    report.row("http", "HTTP answer after last SYN + quiet period, at most", all.http_most);
    report.row("httpAtLeast", "the same, at least", all.http_least);
    report.row("process", "end of `lastsyn drain` after it, at most", all.process_most);
    report.row("httpBound", "HTTP answer after call + bound", all.http_bound);
    report.row("processBound", "end of `lastsyn drain` after call + bound", all.process_bound);
    report.row("control", "HTTP answer of a server that only waits, after its call", all.control);
    let setting = json!({
        "quietPeriodMs": millis(QUIET), "maxWaitMs": millis(BOUND), "podsAtTheSameTime": LANES, "clock": "CLOCK_MONOTONIC",
    });
    report.publish("hook-latency", &setting)
}

fn run(lane: u64) -> Result<Lateness> {
    let pair = Pair::new()?;
    let _server = HaProxy::start(&pair.pod, "a", &[80])?;
    let _control = Control::start(&pair.pod, BOUND)?;
    let mut lateness = Lateness::default();
    let mut dice = Dice::seeded(lane);
    let lanes = usize::try_from(LANES)?;
    {
        let agent = Agent::start(&pair.pod, config(Duration::from_secs(20)))?;
        while lateness.http_most.count() < DRAINS / lanes {
            let drain = lateness.http_most.count();
            to_quiet(&pair, &agent, &mut dice, &mut lateness).with_context(|| format!("drain {drain}"))?;
        }
    }
    let agent = Agent::start(&pair.pod, config(BOUND))?;
    let client = PacedClient::start(&pair.client, pair.targets(80), 100)?;
    await_condition("the client's first answers", SOON, || client.so_far().served_in_all() > 0)?;
    for drain in 0..DRAINS_TO_THE_BOUND / lanes {
        to_the_bound(&pair, &agent, &mut lateness).with_context(|| format!("drain {drain} to the bound"))?;
    }
    Ok(lateness)
}

fn config(bound: Duration) -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", millis(QUIET)))
        .env("LASTSYN_DRAIN_MAX_WAIT", format!("{}ms", millis(bound)))
}

/// One drain in which some connections come, the last of them at a moment of chance.
fn to_quiet(pair: &Pair, agent: &Agent, dice: &mut Dice, lateness: &mut Lateness) -> Result<()> {
    let call = agent.drain()?;
    let hook = agent.hook(["--json"])?;
    await_callers(agent, 2)?;
    let targets = pair.targets(80);
    let mut last = (0, 0);
    for _ in 0..2 {
        wait_until(monotonic_now(), dice.within(QUIET / 2))?;
        let target = targets.get(usize::from(dice.coin())).context("two targets")?;
        last = connect(&pair.client, *target)?;
    }
    let hook_ended_at = ended(&hook)?;
    let answer = call.wait(SOON)?;
    let reason = answer.verdict.get("reason").and_then(serde_json::Value::as_str);
    ensure!(reason == Some("quiet"), "the verdict was {}", answer.verdict);
    let (before, after) = last;
    if answer.answered_at < after {
        eprintln!("a drain is left out: the machine stood still for longer than the quiet period");
        return Ok(());
    }
    lateness.http_most.add(late(answer.answered_at, before, QUIET));
    lateness.http_least.add(late(answer.answered_at, after, QUIET));
    lateness.process_most.add(late(hook_ended_at, before, QUIET));
    Ok(())
}

/// One drain that its bound ends.
fn to_the_bound(pair: &Pair, agent: &Agent, lateness: &mut Lateness) -> Result<()> {
    let hook_started_at = monotonic_now();
    let hook = agent.hook(["--json"])?;
    await_callers(agent, 1)?;
    let hook_ended_at = ended(&hook)?;
    lateness.process_bound.add(late(hook_ended_at, hook_started_at, BOUND));
    let answer = agent.drain()?.wait(SOON)?;
    lateness.http_bound.add(late(answer.answered_at, answer.called_at, BOUND));
    let answer = DrainCall::place(&pair.pod, ADDRESS)?.wait(SOON)?;
    lateness.control.add(late(answer.answered_at, answer.called_at, BOUND));
    Ok(())
}

fn await_callers(agent: &Agent, count: u64) -> Result<()> {
    await_condition("the callers in the drain", SOON, || {
        let callers = agent.status().ok().and_then(|status| status.pointer("/drain/callers")?.as_u64());
        callers == Some(count)
    })
}

/// Connects; returns a moment before the SYN left and one after the handshake.
fn connect(client: &Host, target: SocketAddr) -> Result<(u64, u64)> {
    client.run(|| {
        let before = monotonic_now();
        let connected = TcpStream::connect_timeout(&target, SOON);
        let after = monotonic_now();
        connected.with_context(|| format!("no connection to {target}")).map(|_connection| (before, after))
    })
}

/// Waits until the process has ended, which is when a kubelet learns of it.
fn ended(hook: &Process) -> Result<u64> {
    // It stays to be reaped by its owner.
    waitid(WaitId::Pid(hook.pid()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).context("waiting for the hook")?;
    let ended_at = monotonic_now();
    hook.wait_for_success(SOON)?;
    Ok(ended_at)
}

fn late(at: u64, from: u64, length: Duration) -> i64 {
    at.cast_signed() - from.cast_signed() - i64::try_from(length.as_nanos()).unwrap_or(i64::MAX)
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

impl Lateness {
    fn take(&mut self, other: Self) {
        let Self { http_least, http_most, process_most, http_bound, control, process_bound } = other;
        for (own, others) in [
            (&mut self.http_least, http_least),
            (&mut self.http_most, http_most),
            (&mut self.process_most, process_most),
            (&mut self.http_bound, http_bound),
            (&mut self.control, control),
            (&mut self.process_bound, process_bound),
        ] {
            own.take(others);
        }
    }
}
