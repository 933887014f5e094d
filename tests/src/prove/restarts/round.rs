//! A number of restarts, one after the other.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    Attempt, PacedClient, Summary,
    agent_log::{self, Step},
    clock::monotonic_now,
    kubernetes::{Cluster, ClusterConfig, Deployment, Mode, PORT, Right, ServiceKind, ServiceSpec},
    prove::wait_until,
};

const NAME: &str = "web";
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
    /// What each agent's log has of its drain's course, in the same order.
    pub steps: Vec<Vec<Step>>,
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
                PacedClient::start_served(node.host(), targets.collect(), self.per_second)
            })
            .collect::<Result<Vec<_>>>()?;
        let (mut reports, mut steps) = (Vec::new(), Vec::new());
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
                reports.push(agent_log::verdict(&log).with_context(|| format!("{pod} wrote no verdict:\n{log}"))?);
                steps.push(agent_log::steps(&log));
            }
        }
        wait_until(monotonic_now(), GO_ON)?;
        let mut attempts = Vec::new();
        for client in clients {
            attempts.extend(client.stop()?);
        }
        Ok(Round { attempts, reports, steps })
    }
}

// === impl Round ===

impl Round {
    /// All connections in numbers.
    pub fn summary(&self) -> Summary {
        Summary::of(&self.attempts)
    }

    /// Checks that every drain took the course of a pod's deletion: the hook, then the slices, and the server's stop signal
    /// only after the hook has been let go.
    ///
    /// # Errors
    ///
    /// Naming the first that took another.
    pub fn check_order(&self) -> Result<()> {
        for (steps, report) in self.steps.iter().zip(&self.reports) {
            let begins = steps.starts_with(&[Step::Hook, Step::Withdrawn, Step::Answered]);
            ensure!(begins && steps.contains(&Step::AgentStops), "a drain went {steps:?}: {report}");
        }
        Ok(())
    }

    /// The round in one object.
    pub fn to_json(&self, plan: &Plan) -> Value {
        let summary = self.summary();
        let drains: Vec<_> = self
            .reports
            .iter()
            .zip(&self.steps)
            .map(|(report, steps)| {
                let steps: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
                json!({
                    "reason": report.get("reason"), "hookMs": report.get("durationMs"), "heldBy": report.get("heldBy"),
                    "steps": steps,
                })
            })
            .collect();
        json!({
            "mode": plan.mode.name(), "hook": plan.hook, "restarts": plan.restarts,
            "tried": summary.tried, "refused": summary.refused, "reset": summary.reset,
            "lostOtherwise": summary.closed + summary.timed_out + summary.other,
            "servers": summary.served.len(), "drains": drains,
        })
    }
}
