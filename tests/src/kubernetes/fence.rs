//! A replica of the fence, in a pod of its own.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Access, Cluster, KubePod, PodSpec};
use crate::{AgentConfig, Host, Process, Signal, agent, http, wait::await_condition};

/// Its port.
const PORT: u16 = 19_481;
/// For an answer, and for a start.
const SOON: Duration = Duration::from_secs(20);

/// A replica of the fence.
#[derive(Debug)]
pub struct Fence {
    process: Process,
    access: Access,
    config: AgentConfig,
    node: usize,
    pod: KubePod,
}

// === impl Fence ===

impl Fence {
    /// Starts one in a new pod on a node, numbered from 0, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn start(cluster: &Cluster, node: usize, name: &str, access: &Access) -> Result<Self> {
        Self::with(cluster, node, name, access, AgentConfig::default())
    }

    /// The same with keys of its own in its environment.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn with(cluster: &Cluster, node: usize, name: &str, access: &Access, config: AgentConfig) -> Result<Self> {
        let pod = cluster.pod(node, &PodSpec::new(name, "fence", PORT))?;
        pod.set_ready(true)?;
        let process = start(cluster, node, &pod, access, config.clone())?;
        let fence = Self { process, access: access.clone(), config, node, pod };
        fence.await_answer()?;
        Ok(fence)
    }

    fn await_answer(&self) -> Result<()> {
        await_condition("the fence's answer", SOON, || match self.process.ensure_running() {
            Ok(()) => self.status(self.pod.host()).is_ok().then_some(Ok(())),
            Err(ended) => Some(Err(ended)),
        })
        .with_context(|| format!("the fence wrote:\n{}", self.process.report()))
        .and_then(|outcome| outcome)
    }

    /// Starts it anew in the same pod, after it was killed.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn restart(&mut self, cluster: &Cluster) -> Result<()> {
        self.process = start(cluster, self.node, &self.pod, &self.access, self.config.clone())?;
        self.await_answer()
    }

    /// Ends it at once.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn kill(&self) -> Result<()> {
        self.process.kill().map(drop)
    }

    /// Stops it where it is, or lets it go on.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn freeze(&self, stand_still: bool) -> Result<()> {
        self.process.signal(if stand_still { Signal::STOP } else { Signal::CONT })
    }

    /// Asks it to end, as a kubelet does, and waits.
    ///
    /// # Errors
    ///
    /// When it does not end well.
    pub fn stop(&self) -> Result<()> {
        self.process.signal(Signal::TERM)?;
        self.process.wait_for_success(SOON)
    }

    /// Where it answers, over IPv4.
    pub fn address(&self) -> SocketAddr {
        (self.pod.addresses()[0], PORT).into()
    }

    /// An agent that asks it.
    #[must_use]
    pub fn give_to(&self, config: AgentConfig) -> AgentConfig {
        config.env("LASTSYN_ROUTING_FENCE", format!("http://{}", self.address()))
    }

    /// `GET /v1/status`, from a host.
    ///
    /// # Errors
    ///
    /// When the answer is not 200 with JSON.
    pub fn status(&self, from: &Host) -> Result<Value> {
        self.get(from, "/v1/status")?.json()
    }

    /// Gets any of its resources, from a host.
    ///
    /// # Errors
    ///
    /// When the answer is not 200.
    pub fn get(&self, from: &Host, path: &str) -> Result<http::Answer> {
        let answer = http::get(from, self.address(), path, SOON)?;
        ensure!(answer.status == 200, "the fence answered {path} with {}: {}", answer.status, answer.body);
        Ok(answer)
    }

    /// Waits until its objects are made and it rests.
    ///
    /// # Errors
    ///
    /// When they are not in time.
    pub fn await_rest(&self) -> Result<()> {
        await_condition("the fence's rest", SOON, || {
            let status = self.status(self.pod.host()).ok()?;
            let nodes = status.get("nodes").and_then(Value::as_array)?;
            let written = |node: &Value| node.get("generation").is_some_and(Value::is_u64);
            let rests = status.get("writes").and_then(Value::as_bool) == Some(false);
            (rests && !nodes.is_empty() && nodes.iter().all(written)).then_some(())
        })
        .with_context(|| format!("the fence wrote:\n{}", self.process.report()))
    }

    /// Its process; its log is on standard error.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its pod.
    pub fn pod(&self) -> &KubePod {
        &self.pod
    }
}

fn start(cluster: &Cluster, node: usize, pod: &KubePod, access: &Access, config: AgentConfig) -> Result<Process> {
    let node = cluster.nodes().get(node).with_context(|| format!("there is no node {node}"))?;
    let config = access.give_to(pod.downward(node, config)?).env("LASTSYN_LOG_LEVEL", "debug");
    let mut command = agent::command(pod.host(), &config.through, &agent::program()?)?;
    command.arg("fence").envs(config.env);
    Process::start(format!("the fence in {}", pod.name()), &mut command)
}
