//! A number of restarts, one after the other.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::{
    Attempt, PacedClient, Summary,
    clock::monotonic_now,
    kubernetes::{Cluster, ClusterConfig, Deployment, Mode, PORT, Right, ServiceKind, ServiceSpec},
    prove::wait_until,
    wait::await_condition,
};

const NAME: &str = "web";
const SOON: Duration = Duration::from_secs(20);
/// How long clients go on after the last restart.
const GO_ON: Duration = Duration::from_secs(1);

/// How they are run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The mode of the nodes.
    pub mode: Mode,
    /// Whether the server's container has the hook.
    pub hook: bool,
    /// How many restarts.
    pub restarts: usize,
    /// Connections per second of each node's client, to each family in turn.
    pub per_second: u32,
}

/// What came of them.
#[derive(Clone, Debug)]
pub struct Round {
    /// Every connection.
    pub attempts: Vec<Attempt>,
    /// What the agent of each pod reported of its drain, in the order of the restarts.
    pub reports: Vec<Value>,
}

// === impl Plan ===

impl Plan {
    /// Runs them, in a cluster of its own.
    ///
    /// # Errors
    ///
    /// When it does not go as planned. Lost connections are no error: they are the result.
    pub fn run(&self) -> Result<Round> {
        let config = ClusterConfig { mode: self.mode, kubelet: true, ..ClusterConfig::default() };
        let cluster = Cluster::with(&config)?;
        cluster.access("agent", &Right::ALL)?;
        let service = cluster.service(&ServiceSpec::new(NAME, NAME, PORT).kind(ServiceKind::NodePort))?;
        let deployment = Deployment::create(&cluster, NAME, "agent", self.hook)?;
        let clients = cluster
            .nodes()
            .iter()
            .map(|node| {
                let targets = service.cluster().into_iter().chain(service.on(node));
                PacedClient::start(node.host(), targets.collect(), self.per_second)
            })
            .collect::<Result<Vec<_>>>()?;
        for client in &clients {
            await_condition("a client's first answers", SOON, || client.so_far().served_in_all() >= 8)?;
        }
        let mut reports = Vec::new();
        for number in 0..self.restarts {
            let (pod, uid) = &deployment.only_pod()?;
            let kubelet = cluster.kubelet()?;
            let mut log = String::new();
            deployment.restart(number, || {
                if let Ok(longer) = kubelet.log(pod, uid, "lastsyn") {
                    log = longer;
                }
            })?;
            if self.hook {
                reports.push(verdict_in(&log).with_context(|| format!("{pod} wrote no verdict:\n{log}"))?);
            }
        }
        wait_until(monotonic_now(), GO_ON)?;
        let mut attempts = Vec::new();
        for client in clients {
            attempts.extend(client.stop()?);
        }
        Ok(Round { attempts, reports })
    }
}

/// The verdict that an agent wrote of its drain, in its log. Its lines are JSON behind containerd's time and stream, and the
/// verdict is a text in one of them.
pub fn verdict_in(log: &str) -> Option<Value> {
    let verdict = |line: &str| -> Option<Value> {
        let line: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
        let verdict = line.pointer("/fields/verdict").or_else(|| line.get("verdict"))?;
        verdict.as_str().map_or_else(|| Some(verdict.clone()), |text| serde_json::from_str(text).ok())
    };
    log.lines().rev().find_map(verdict)
}

// === impl Round ===

impl Round {
    /// All connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// The round in one object.
    pub fn to_json(&self, plan: &Plan) -> Value {
        let summary = self.summary();
        let drains: Vec<_> = self
            .reports
            .iter()
            .map(|report| json!({"reason": report.get("reason"), "hookMs": report.get("durationMs"), "heldBy": report.get("heldBy")}))
            .collect();
        json!({
            "mode": plan.mode.name(), "hook": plan.hook, "restarts": plan.restarts,
            "tried": summary.tried, "refused": summary.refused, "reset": summary.reset,
            "lostOtherwise": summary.closed + summary.timed_out + summary.other,
            "servers": summary.served.len(), "drains": drains,
        })
    }
}
