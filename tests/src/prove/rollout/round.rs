//! One round of it.

use std::{
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::{
    Agent, AgentConfig, Attempt, PacedClient, Pod, Process, RealServer, ServerKind, Summary, World,
    clock::monotonic_now, process::Stream, prove::wait_until, sockets::listens, wait::await_condition,
};

const PORT: u16 = 80;
/// For everything that takes milliseconds.
const SOON: Duration = Duration::from_secs(10);
/// Longer than the hook's own bound.
const HOOK: Duration = Duration::from_secs(40);

/// How a round is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server in both pods.
    pub server: ServerKind,
    /// Whether the server's stop waits for the hook; else it is stopped where the hook would have been called.
    pub hook: bool,
    /// Connections per second, to each family in turn.
    pub per_second: u32,
    /// From the hook's call until new connections go to the other pod.
    pub move_after: Duration,
    /// How long the client goes on after the server's stop.
    pub go_on: Duration,
}

/// What came of a round.
#[derive(Clone, Debug)]
pub struct Round {
    /// Every connection, in the order in which they were tried.
    pub attempts: Vec<Attempt>,
    /// From the hook's call to the end of its process.
    pub hook_took: Option<Duration>,
    /// The verdict that it wrote.
    pub verdict: Option<Value>,
    /// From the last try that pod A served to the end of the hook's process.
    pub since_last_served: Option<Duration>,
    /// How many connections were tried after the server's listeners had closed.
    pub tried_after_stop: usize,
}

// === impl Plan ===

impl Plan {
    /// What the promise says: 100 connections per second, moved after 3 s, going on for 1 s.
    pub fn full(hook: bool) -> Self {
        Self {
            server: ServerKind::HaProxy,
            hook,
            per_second: 100,
            move_after: Duration::from_secs(3),
            go_on: Duration::from_secs(1),
        }
    }

    /// Runs it, in a world of its own.
    ///
    /// # Errors
    ///
    /// When the scene cannot be made or does not go as planned. Lost connections are no error: they are the result.
    pub fn run(&self) -> Result<Round> {
        let world = World::new()?;
        let server = RealServer::start(self.server, &world.pod_a, "a", PORT)?;
        let _successor = RealServer::start(self.server, &world.pod_b, "b", PORT)?;
        let agent = Agent::start(&world.pod_a, server.tell(AgentConfig::default()))?;
        let client = PacedClient::start(&world.client, world.targets(PORT), self.per_second)?;
        await_condition("the client's first answers", SOON, || client.so_far().served_by("a") >= 20)?;

        if self.hook && server.is_told() {
            agent.hook(["--mark", "--strict"])?.wait_for_success(SOON)?;
        }
        let called_at = monotonic_now();
        let hook = self.hook.then(|| agent.hook(["--json"])).transpose()?;
        let hook_ended_at = thread::scope(|scope| {
            let moving = scope.spawn(|| {
                wait_until(called_at, self.move_after)?;
                world.route_to(Pod::B)
            });
            // As a kubelet does: whenever the hook ends, and at once.
            let ended_at = hook.as_ref().map(ended).transpose()?;
            server.stop()?;
            await_condition("closed listeners", SOON, || listens(&world.pod_a, PORT).is_ok_and(|listens| !listens))?;
            joined(moving)?;
            anyhow::Ok(ended_at)
        })?;
        let stopped_at = monotonic_now();
        wait_until(stopped_at, self.go_on)?;
        let attempts = client.stop()?;
        server.wait(SOON).context("the server ends when its connections have")?;
        let last = attempts.iter().rev().find(|attempt| served_by(attempt, "a")).map(|attempt| attempt.tried_at);
        let until_hook = |from: u64| hook_ended_at.map(|end| Duration::from_nanos(end.saturating_sub(from)));
        Ok(Round {
            hook_took: until_hook(called_at),
            verdict: hook.as_ref().and_then(|hook| serde_json::from_str(&hook.text(Stream::Output)).ok()),
            since_last_served: last.and_then(until_hook),
            tried_after_stop: attempts.iter().filter(|attempt| attempt.tried_at > stopped_at).count(),
            attempts,
        })
    }
}

// === impl Round ===

impl Round {
    /// Its connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// Checks that the round was what it is to be: connections of both families reached both pods, some of them after the
    /// stop, and a hook was held by the agent's verdict.
    ///
    /// # Errors
    ///
    /// Naming what was missing: such a round shows nothing.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        let missing = |what: String| Err(anyhow!("the round shows nothing: {what}; {}", self.summary()));
        for (v6, family) in [(false, "IPv4"), (true, "IPv6")] {
            for name in ["a", "b"] {
                let any =
                    self.attempts.iter().any(|attempt| attempt.target.is_ipv6() == v6 && served_by(attempt, name));
                if !any {
                    return missing(format!("no connection over {family} was served by {name}"));
                }
            }
        }
        if self.tried_after_stop == 0 {
            return missing("no connection was tried after the stop".to_owned());
        }
        match (plan.hook, &self.verdict) {
            (true, None) => missing("the hook gave no verdict".to_owned()),
            (true, Some(verdict)) if verdict.get("reason").and_then(Value::as_str) != Some("quiet") => {
                missing(format!("the verdict was {verdict}"))
            }
            _ => Ok(()),
        }
    }

    /// The round in one object.
    pub fn to_json(&self, number: usize, plan: &Plan) -> Value {
        let summary = self.summary();
        let millis =
            |length: Option<Duration>| length.map(|length| u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        let v6 = self.attempts.iter().filter(|attempt| attempt.target.is_ipv6()).count();
        json!({
            "round": number,
            "hook": plan.hook,
            "moveAfterMs": millis(Some(plan.move_after)),
            "tried": summary.tried,
            "overIpv6": v6,
            "servedByA": summary.served_by("a"),
            "servedByB": summary.served_by("b"),
            "refused": summary.refused,
            "reset": summary.reset,
            "lostOtherwise": summary.closed + summary.timed_out + summary.other,
            "triedAfterStop": self.tried_after_stop,
            "hookMs": millis(self.hook_took),
            "sinceLastServedMs": millis(self.since_last_served),
            "reason": self.verdict.as_ref().and_then(|verdict| verdict.get("reason")),
        })
    }
}

fn ended(hook: &Process) -> Result<u64> {
    hook.wait_for_success(HOOK)?;
    Ok(monotonic_now())
}

fn joined(moving: ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    moving.join().unwrap_or_else(|_panic| Err(anyhow!("moving the forwarding panicked")))
}

fn served_by(attempt: &Attempt, name: &str) -> bool {
    matches!(&attempt.outcome, crate::Outcome::Served { by } if by == name)
}
