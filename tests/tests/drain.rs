//! The drain's end: never before the last SYN and the quiet period, never before `minWait`, and at `maxWait` at the latest.
//! Callers share it.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, DrainAnswer, DrainCall, Outcome, PacedClient, Pair, Server, ServerConfig,
    agent::counts,
    await_condition, connect_once, monotonic_now,
    pair::INTERFACE,
    process::Stream,
    prove::{Dice, wait_until},
    raw::Sender,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
const QUIET: Duration = Duration::from_millis(400);

/// An agent whose drains end soon after the last SYN, and whose other conditions are met at once.
fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
        // Nobody answers for the forged sources, so their handshakes stay.
        .env("LASTSYN_DRAIN_HANDSHAKE_GRACE", "0s")
}

/// Waits until the agent has so many callers in a drain. It counts from then on.
fn await_callers(agent: &Agent, count: u64) -> Result<Value> {
    await_condition(&format!("{count} callers in the drain"), SOON, || {
        let drain = agent.status().ok()?.get_mut("drain")?.take();
        (drain.get("callers") == Some(&count.into())).then_some(drain)
    })
}

/// A SYN that was sent between two moments of the test's clock.
#[derive(Clone, Copy, Debug)]
struct Sent {
    after: u64,
    before: u64,
}

/// A pod with a server, a client that sends it SYNs, and an agent.
struct Scene {
    pair: Pair,
    _server: Server,
    agent: Agent,
}

impl Scene {
    fn new(config: AgentConfig) -> Result<Self> {
        let pair = Pair::new()?;
        let server = Server::start(&pair.pod, ServerConfig::default())?;
        let agent = Agent::start(&pair.pod, config)?;
        Ok(Self { pair, _server: server, agent })
    }

    /// Sends SYNs at moments of chance until the hook is answered: forged ones and connections, over both families.
    fn send_until_answered(&self, call: &DrainCall, count: usize, dice: &mut Dice) -> Result<Vec<Sent>> {
        let sender = Sender::open(&self.pair.client, INTERFACE)?;
        let targets = self.pair.targets(80);
        let mut sent = Vec::new();
        for number in 0..count {
            wait_until(monotonic_now(), dice.within(QUIET * 3 / 4))?;
            if call.answered()?.is_some() {
                break;
            }
            let target = *targets.get(usize::from(dice.coin())).context("two targets")?;
            let after = monotonic_now();
            if dice.coin() {
                let attempt = connect_once(&self.pair.client, target, SOON);
                ensure!(attempt.outcome == Outcome::Served { by: "server".to_owned() }, "{attempt:?}");
            } else {
                sender.send(&self.pair.syn(forged(target, number)?, target))?;
            }
            sent.push(Sent { after, before: monotonic_now() });
        }
        Ok(sent)
    }
}

/// A source that no host has, of the target's family.
fn forged(target: SocketAddr, number: usize) -> Result<SocketAddr> {
    let address = if target.is_ipv6() { "2001:db8::7".parse()? } else { "198.51.100.7".parse()? };
    Ok(SocketAddr::new(address, 40_000 + u16::try_from(number)?))
}

/// The earliest moment at which a drain may have ended, and whether the last SYN gives it. A drain ends rightly in any
/// pause that may have been as long as the quiet period; a machine that stands still for a while makes such pauses.
fn earliest_end(called_at: u64, sent: &[Sent]) -> (u64, bool) {
    let quiet = u64::try_from(QUIET.as_nanos()).unwrap_or(u64::MAX);
    let call = Sent { after: called_at, before: called_at };
    let syns: Vec<Sent> = std::iter::once(call).chain(sent.iter().copied()).collect();
    let pause = syns.iter().zip(syns.iter().skip(1)).find(|(syn, next)| next.before - syn.after >= quiet);
    let last = pause.map_or(sent.last().copied().unwrap_or(call), |(syn, _)| *syn);
    (last.after + quiet, pause.is_none())
}

#[test]
fn the_answer_never_comes_before_the_last_syn_and_the_quiet_period() {
    let scene = Scene::new(config()).unwrap();
    let mut dice = Dice::seeded(1);
    let mut by_last = 0;
    for count in [0, 1, 2, 4, 7] {
        let call = scene.agent.drain().unwrap();
        await_callers(&scene.agent, 1).unwrap();
        let sent = scene.send_until_answered(&call, count, &mut dice).unwrap();
        let answer = call.wait(SOON).unwrap();
        let (earliest, last) = earliest_end(answer.called_at, &sent);
        assert!(answer.answered_at >= earliest, "{} ns early: {sent:?} {answer:?}", earliest - answer.answered_at);
        assert_eq!(answer.verdict["reason"], "quiet", "{answer:?}");
        if last {
            by_last += 1;
            // A forged source of an earlier drain may have its handshake still under way.
            let counted = ["IPv4", "IPv6"].map(|family| counts(&answer.verdict, 80, family).unwrap());
            assert_eq!(counted.iter().map(|counts| counts.sum()).sum::<u64>(), sent.len() as u64, "{answer:?}");
            assert!(counted.iter().all(|counts| counts.sum() == counts.new + counts.retransmit), "{answer:?}");
        }
    }
    assert!(by_last >= 3, "only {by_last} of 5 drains were ended by the last SYN");
}

#[test]
fn the_answer_never_comes_before_min_wait() {
    let min_wait = Duration::from_millis(1200);
    let scene = Scene::new(config().env("LASTSYN_DRAIN_MIN_WAIT", "1200ms")).unwrap();
    let answer = scene.agent.drain().unwrap().wait(SOON).unwrap();
    assert!(took(&answer) >= min_wait, "{answer:?}");
    assert_eq!(answer.verdict["reason"], "quiet", "{answer:?}");
    assert!(answer.verdict["heldBy"]["floorMs"].as_u64().unwrap() >= 1200, "{answer:?}");

    // The quiet period counts where it is longer.
    let call = scene.agent.drain().unwrap();
    await_callers(&scene.agent, 1).unwrap();
    wait_until(call.called_at(), Duration::from_secs(1)).unwrap();
    let sent_at = monotonic_now();
    let served = connect_once(&scene.pair.client, scene.pair.targets(80)[1], SOON);
    let answer = call.wait(SOON).unwrap();
    assert!(took(&answer) >= min_wait, "{answer:?}");
    if served.tried_at < answer.called_at + nanos(min_wait) {
        assert!(answer.answered_at >= sent_at + nanos(QUIET), "{answer:?}");
    }
}

#[test]
fn the_answer_comes_at_max_wait_while_connections_come() {
    let max_wait = Duration::from_millis(1300);
    let scene = Scene::new(config().env("LASTSYN_DRAIN_MAX_WAIT", "1300ms")).unwrap();
    let client = PacedClient::start(&scene.pair.client, scene.pair.targets(80), 100).unwrap();
    await_condition("a client's answers", SOON, || client.so_far().served_in_all() > 0).unwrap();
    let answer = scene.agent.drain().unwrap().wait(SOON).unwrap();
    assert!(took(&answer) >= max_wait, "{answer:?}");
    assert_eq!((answer.status, &answer.verdict["reason"]), (200, &"bound".into()), "{answer:?}");
    assert!(answer.verdict["holding"].as_array().unwrap().contains(&"quiet".into()), "{answer:?}");
    assert_eq!(client.stop().unwrap().iter().filter(|attempt| attempt.outcome == Outcome::Refused).count(), 0);
}

#[test]
fn callers_share_one_drain_and_none_that_goes_away_ends_it() {
    let min_wait = Duration::from_secs(2);
    let scene = Scene::new(config().env("LASTSYN_DRAIN_MIN_WAIT", "2s")).unwrap();
    let agent = &scene.agent;
    let first = agent.drain().unwrap();
    let called_at = first.called_at();
    let started_at = await_callers(agent, 1).unwrap()["startedAt"].take();
    first.hang_up();
    assert_eq!(await_callers(agent, 0).unwrap()["startedAt"], started_at);

    let socket = scene.pair.lab.directory().join("agent-pod.sock");
    let over_http = agent.drain().unwrap();
    let over_unix = agent.hook(["--json", "--agent", &format!("unix:{}", socket.display())]).unwrap();
    let killed = agent.hook(["--json"]).unwrap();
    await_callers(agent, 3).unwrap();
    killed.kill().unwrap();
    await_callers(agent, 2).unwrap();

    let answer = over_http.wait(SOON).unwrap();
    over_unix.wait_for_success(SOON).unwrap();
    assert!(answer.answered_at >= called_at + nanos(min_wait), "{answer:?}");
    assert_eq!(answer.verdict["startedAt"], started_at);
    let hook_verdict: Value = serde_json::from_str(&over_unix.text(Stream::Output)).unwrap();
    assert_eq!(hook_verdict, answer.verdict);
    assert_eq!(killed.text(Stream::Output), "");
    let status = agent.status().unwrap();
    assert_eq!((&status["drainsEnded"], &status["state"]), (&1.into(), &"ended".into()));

    // The agent is there for the next.
    let answer = agent.drain().unwrap().wait(SOON).unwrap();
    assert_eq!((answer.status, &answer.verdict["reason"]), (200, &"quiet".into()));
    assert_eq!(agent.status().unwrap()["drainsEnded"], 2);
}

fn took(answer: &DrainAnswer) -> Duration {
    Duration::from_nanos(answer.answered_at - answer.called_at)
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
