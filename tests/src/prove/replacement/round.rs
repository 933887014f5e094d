//! One replacement of three pods by three others.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::{
    AgentConfig, Attempt, Outcome, PacedClient, Summary,
    clock::monotonic_now,
    kubernetes::{Access, Cluster, Ended, Mode, PORT, PodSpec, Right, ServiceKind, ServiceSpec, Workload},
    prove::{
        balancer::{Balancer, Checks},
        wait_until,
    },
};

/// Longer than the longest drain.
const HOOK: Duration = Duration::from_mins(1);
/// How long clients go on when the last pod has gone.
const GO_ON: Duration = Duration::from_secs(1);
/// Those of a balancer that knows at once.
const CHECKS: Checks = Checks { every: Duration::from_millis(100), failures: 1, until_all_know: Duration::ZERO };
/// How many pods are replaced, one on each node.
const PODS: usize = 3;

/// How a replacement is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The mode of the nodes.
    pub mode: Mode,
    /// Whether a pod's end waits for its hook; else the server is stopped where the hook would have been called.
    pub hook: bool,
    /// Connections per second of each of the nine clients, to each family in turn.
    pub per_second: u32,
    /// From one pod's end to the next pod's deletion.
    pub pause: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Round {
    /// Every connection, by what it went through.
    pub attempts: BTreeMap<&'static str, Vec<Attempt>>,
    /// How the hooks ended.
    pub ended: Vec<Ended>,
}

// === impl Plan ===

impl Plan {
    /// Runs it, in a cluster of its own.
    ///
    /// # Errors
    ///
    /// When it does not go as planned. Lost connections are no error: they are the result.
    pub fn run(&self) -> Result<Round> {
        let cluster = Cluster::up(self.mode)?;
        let access = cluster.access("agent", &Right::ALL)?;
        let inside = cluster.service(&ServiceSpec::new("inside", "web", PORT))?;
        let ports = cluster.service(&ServiceSpec::new("ports", "web", PORT).kind(ServiceKind::NodePort))?;
        let local = ServiceSpec::new("balanced", "web", PORT).kind(ServiceKind::LoadBalancer).local();
        let balanced = cluster.service(&local)?;
        let start = |node: usize, name: String| -> Result<Workload> {
            let workload = start_pod(&cluster, &access, node, name)?;
            cluster.await_routes(&workload.pod, PORT, true)?;
            Ok(workload)
        };
        let mut old = (0..PODS).map(|node| start(node, format!("old-{node}"))).collect::<Result<Vec<_>>>()?;

        let mut clients = Vec::new();
        for node in cluster.nodes() {
            clients.push((
                "ClusterIP",
                PacedClient::start_served(node.host(), inside.cluster().to_vec(), self.per_second)?,
            ));
            clients.push(("NodePort", PacedClient::start_served(cluster.outside(), ports.on(node), self.per_second)?));
        }
        let outside = Balancer::start(&cluster, &balanced, self.per_second, CHECKS)?;

        let mut ended = Vec::new();
        let mut new = Vec::new();
        for node in 0..PODS {
            // One more than there are to be, as a Deployment does it.
            new.push(start(node, format!("new-{node}"))?);
            let workload = old.remove(0);
            if self.hook {
                ended.push(workload.delete()?.finish(HOOK)?);
            } else {
                workload.pod.delete()?;
                workload.server.soft_stop()?;
                workload.pod.finish()?;
            }
            drop(workload);
            wait_until(monotonic_now(), self.pause)?;
        }
        wait_until(monotonic_now(), GO_ON)?;
        let mut attempts = BTreeMap::<_, Vec<_>>::new();
        for (path, stopped) in stop(clients) {
            attempts.entry(path).or_default().extend(stopped?);
        }
        attempts.insert("LoadBalancer", outside.stop()?);
        Ok(Round { attempts, ended })
    }
}

/// Each waits for its last connections, all at once.
fn stop(clients: Vec<(&'static str, PacedClient)>) -> Vec<(&'static str, Result<Vec<Attempt>>)> {
    thread::scope(|scope| {
        let stopping: Vec<_> =
            clients.into_iter().map(|(path, client)| (path, scope.spawn(|| client.stop()))).collect();
        stopping
            .into_iter()
            .map(|(path, client)| (path, client.join().unwrap_or_else(|_panic| Err(anyhow!("a client panicked")))))
            .collect()
    })
}

fn start_pod(cluster: &Cluster, access: &Access, node: usize, name: String) -> Result<Workload> {
    Workload::start(cluster, node, &PodSpec::new(name, "web", PORT), Some(access), AgentConfig::default())
}

// === impl Round ===

impl Round {
    /// All connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(self.attempts.values().flatten())
    }

    /// Checks that the round was what it is to be: over every path and family, every pod was reached.
    ///
    /// # Errors
    ///
    /// Naming what was missing: such a round shows nothing.
    pub fn check(&self, plan: &Plan) -> Result<()> {
        for (path, attempts) in &self.attempts {
            for (v6, family) in [(false, "IPv4"), (true, "IPv6")] {
                for pod in ["old", "new"].into_iter().flat_map(|age| (0..PODS).map(move |node| format!("{age}-{node}")))
                {
                    let reached = attempts.iter().any(|attempt| {
                        attempt.target.is_ipv6() == v6
                            && matches!(&attempt.outcome, Outcome::Served { by } if *by == pod)
                    });
                    ensure!(reached, "the round shows nothing: {pod} served nobody over {path} and {family}");
                }
            }
        }
        ensure!(self.ended.len() == if plan.hook { PODS } else { 0 }, "{} hooks ended", self.ended.len());
        Ok(())
    }

    /// The round in one object.
    pub fn to_json(&self, number: usize, plan: &Plan) -> Value {
        let summary = self.summary();
        let by_path: BTreeMap<_, _> = self
            .attempts
            .iter()
            .map(|(path, attempts)| {
                let summary = Summary::of(attempts);
                (path, json!({"tried": summary.tried, "lost": summary.lost()}))
            })
            .collect();
        let drains: Vec<_> = self
            .ended
            .iter()
            .map(|ended| {
                json!({
                    "reason": ended.reason(),
                    "hookMs": u64::try_from(ended.took.as_millis()).unwrap_or(u64::MAX),
                    "heldBy": ended.verdict.get("heldBy"),
                    "notObserved": ended.verdict.get("notObserved"),
                })
            })
            .collect();
        json!({
            "round": number, "mode": plan.mode.name(), "hook": plan.hook,
            "tried": summary.tried, "refused": summary.refused, "reset": summary.reset,
            "lostOtherwise": summary.closed + summary.timed_out + summary.other,
            "paths": by_path, "drains": drains,
        })
    }
}
