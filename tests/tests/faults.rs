//! Whatever becomes of the agent, the pod serves, and the hook never ends early: it holds to its own bound, or to the
//! verdict of an agent that has seen a quiet period itself (S2, S8).

use std::{thread, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, HaProxy, Host, Outcome, PacedClient, Pair, Process, Server, ServerConfig, Signal, agent,
    await_condition, connect_once, monotonic_now,
    process::Stream,
    prove::{Dice, wait_until},
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// A pod that serves, with no agent yet.
struct Scene {
    pair: Pair,
    _server: HaProxy,
}

/// A hook's process, with a moment before its start.
struct Hook {
    process: Process,
    started_after: u64,
    bound: Duration,
}

impl Scene {
    fn new() -> Result<Self> {
        let pair = Pair::new()?;
        let server = HaProxy::start(&pair.pod, "a", &[80])?;
        Ok(Self { pair, _server: server })
    }

    /// Checks that the pod serves over both families.
    fn serves(&self) -> Result<()> {
        for target in self.pair.targets(80) {
            let attempt = connect_once(&self.pair.client, target, SOON);
            ensure!(attempt.outcome == Outcome::Served { by: "a".to_owned() }, "{attempt:?}");
        }
        Ok(())
    }
}

impl Hook {
    fn start(host: &Host, bound: Duration) -> Result<Self> {
        let started_after = monotonic_now();
        let process = agent::hook(host, ["--json", "--max-wait", &format!("{}ms", bound.as_millis())])?;
        Ok(Self { process, started_after, bound })
    }

    /// Waits for its end, with exit code 0, and returns what it wrote on standard output.
    fn ended(&self) -> Result<Value> {
        self.process.wait_for_success(self.bound + SOON)?;
        let text = self.process.text(Stream::Output);
        serde_json::from_str(&text).with_context(|| format!("the hook wrote `{text}`"))
    }

    fn took(&self) -> Duration {
        Duration::from_nanos(monotonic_now() - self.started_after)
    }

    /// Waits for its end, which is to be at its own bound.
    fn held_to_its_bound(&self) -> Result<Value> {
        let verdict = self.ended()?;
        let took = self.took();
        ensure!(took >= self.bound, "the hook ended after {took:?}: {verdict}");
        ensure!(
            verdict.get("reason") == Some(&"bound".into()) && verdict.get("by") == Some(&"hook".into()),
            "{verdict}"
        );
        Ok(verdict)
    }
}

/// An agent that sees quiet soon.
fn quick() -> AgentConfig {
    AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "600ms")
}

#[test]
fn an_absent_agent() {
    let scene = Scene::new().unwrap();
    let hook = Hook::start(&scene.pair.pod, Duration::from_secs(2)).unwrap();
    scene.serves().unwrap();
    let verdict = hook.held_to_its_bound().unwrap();
    assert_eq!(verdict["agent"]["reached"], false, "{verdict}");
}

#[test]
fn an_agent_that_crashes_at_start() {
    let scene = Scene::new().unwrap();
    let hook = Hook::start(&scene.pair.pod, Duration::from_secs(2)).unwrap();
    let crash = || {
        let config = AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "soon");
        let status = Agent::spawn(&scene.pair.pod, config)?.wait(SOON)?;
        ensure!(!status.success(), "it ended with {status}");
        Ok(())
    };
    let mut crashes = 0;
    while hook.process.is_running().unwrap() {
        crash().unwrap();
        crashes += 1;
        scene.serves().unwrap();
    }
    hook.held_to_its_bound().unwrap();
    assert!(crashes >= 2, "{crashes} crashes");
}

#[test]
fn another_server_in_the_place_of_the_agent() {
    // It answers whatever it is asked with 200, but with no verdict.
    let scene = Scene::new().unwrap();
    let config =
        ServerConfig { name: "{\"reason\":\"quiet\"}".to_owned(), port: agent::PORT, ..ServerConfig::default() };
    let _other = Server::start(&scene.pair.pod, config).unwrap();
    let hook = Hook::start(&scene.pair.pod, Duration::from_secs(2)).unwrap();
    scene.serves().unwrap();
    let verdict = hook.held_to_its_bound().unwrap();
    assert_eq!(verdict["agent"]["reached"], true, "{verdict}");
}

#[test]
fn an_agent_that_hangs() {
    let scene = Scene::new().unwrap();
    let agent = Agent::start(&scene.pair.pod, quick().env("LASTSYN_DRAIN_MIN_WAIT", "1s")).unwrap();
    let before = Hook::start(&scene.pair.pod, Duration::from_secs(2)).unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    agent.process().signal(Signal::STOP).unwrap();
    // The kernel still takes this one's connection.
    let after = Hook::start(&scene.pair.pod, Duration::from_secs(2)).unwrap();
    scene.serves().unwrap();
    for hook in [before, after] {
        let verdict = hook.held_to_its_bound().unwrap();
        assert_eq!(verdict["agent"]["reached"], true, "{verdict}");
    }
}

#[test]
fn an_agent_that_restarts_starts_the_quiet_period_again() {
    let quiet = Duration::from_millis(1500);
    let config = || AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "1500ms");
    let scene = Scene::new().unwrap();
    let agent = Agent::start(&scene.pair.pod, config()).unwrap();
    scene.serves().unwrap();
    let hook = Hook::start(&scene.pair.pod, Duration::from_secs(20)).unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    wait_until(monotonic_now(), Duration::from_secs(1)).unwrap();
    agent.kill().unwrap();
    drop(agent);

    let restarted_after = monotonic_now();
    let agent = Agent::start(&scene.pair.pod, config()).unwrap();
    let verdict = hook.ended().unwrap();
    let since_restart = Duration::from_nanos(monotonic_now() - restarted_after);
    assert!(since_restart >= quiet, "{since_restart:?} after the restart: {verdict}");
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    assert!(hook.took() >= Duration::from_secs(1) + quiet);
    // What comes after the end is told there alone.
    let told = agent.status().unwrap();
    for part in ["reason", "startedAt", "durationMs", "heldBy", "notObserved", "sensor"] {
        assert_eq!(told["verdict"][part], verdict[part], "{part}");
    }
}

/// With a client that never stops there is no quiet period: only the hook's bound may end it.
#[test]
fn an_agent_that_is_killed_at_any_moment() {
    let rounds = |lane: u64| -> Result<()> {
        let scene = Scene::new()?;
        let client = PacedClient::start(&scene.pair.client, scene.pair.targets(80), 50)?;
        let mut dice = Dice::seeded(lane);
        let bound = Duration::from_millis(1200);
        for round in 0..5 {
            let mut agent = Some(Agent::start(&scene.pair.pod, quick())?);
            let hook = Hook::start(&scene.pair.pod, bound)?;
            let killed_at = dice.within(bound);
            wait_until(hook.started_after, killed_at)?;
            if let Some(agent) = agent.take() {
                agent.kill()?;
            }
            // A kubelet may have started the next one before the hook's bound.
            let _next = dice.coin().then(|| Agent::spawn(&scene.pair.pod, quick())).transpose()?;
            hook.held_to_its_bound()
                .with_context(|| format!("lane {lane}, round {round}, killed after {killed_at:?}"))?;
        }
        let attempts = client.stop()?;
        let lost = attempts.iter().filter(|attempt| attempt.outcome != Outcome::Served { by: "a".to_owned() });
        ensure!(lost.count() == 0, "the pod did not serve");
        Ok(())
    };
    thread::scope(|scope| {
        let lanes = [1, 2, 3, 4].map(|lane| scope.spawn(move || rounds(lane)));
        for lane in lanes {
            lane.join().map_err(|_panic| anyhow!("a lane panicked")).and_then(|result| result).unwrap();
        }
    });
}
