//! A pod with a server and the agent beside it, and the end that a kubelet gives them.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Access, Cluster, KubePod, PodSpec, addresses::API_PORT};
use crate::{
    Agent, AgentConfig, HaProxy, Process,
    clock::monotonic_now,
    process::Stream,
    sockets::{Socket, SocketState, tcp_sockets},
    wait::await_condition,
};

/// The server's port.
pub const PORT: u16 = 8080;
/// For what takes milliseconds.
const SOON: Duration = Duration::from_secs(10);

/// `HAProxy` with the agent as its sidecar, in a pod that is ready.
#[derive(Debug)]
pub struct Workload {
    /// The agent.
    pub agent: Agent,
    /// The server; it answers with the pod's name.
    pub server: HaProxy,
    /// The pod.
    pub pod: KubePod,
}

/// A hook that a kubelet has called for a pod that is to end.
#[derive(Debug)]
pub struct Stopping<'a> {
    workload: &'a Workload,
    hook: Process,
    /// When the API server was asked for the deletion, or else when the kubelet began, on the clock of [`monotonic_now`].
    pub deleted_at: u64,
    /// When the hook was called, on the same clock.
    pub called_at: u64,
}

/// How a hook ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The verdict.
    pub verdict: Value,
    /// From the hook's call to its end.
    pub took: Duration,
    /// When it ended, on the clock of [`monotonic_now`].
    pub at: u64,
}

// === impl Workload ===

impl Workload {
    /// Starts both in a new pod on a node, numbered from 0, and says that the pod is ready.
    ///
    /// # Errors
    ///
    /// When one of them does not come up.
    pub fn start(
        cluster: &Cluster,
        node: usize,
        spec: &PodSpec,
        access: Option<&Access>,
        config: AgentConfig,
    ) -> Result<Self> {
        let pod = cluster.pod(node, spec)?;
        let server = HaProxy::start(pod.host(), pod.name(), &[PORT])?;
        let config = pod.downward(cluster.node(pod.node())?, config)?;
        let config = match access {
            Some(access) => access.give_to(config),
            None => config,
        };
        let agent = Agent::start(pod.host(), config)?;
        pod.set_ready(true)?;
        Ok(Self { agent, server, pod })
    }

    /// Waits until the agent has no connection to the API server, for either of the two: what the server has sent before it
    /// knows that a connection has ended still comes to the pod.
    ///
    /// # Errors
    ///
    /// When there is one for longer than that.
    pub fn await_no_api_connection(&self, cluster: &Cluster, within: Duration) -> Result<()> {
        let lasts = |one: &Socket| one.state != SocketState::TimeWait;
        let of_agent = |one: &Socket| one.remote.port() == API_PORT && lasts(one);
        let of_server = |one: &Socket| {
            let is_ours = self.pod.addresses().contains(&one.remote.ip().to_canonical());
            one.local.port() == API_PORT && is_ours && lasts(one)
        };
        let none =
            |host, is_one: &dyn Fn(&Socket) -> bool| tcp_sockets(host).is_ok_and(|sockets| !sockets.iter().any(is_one));
        await_condition(&format!("no connection of {} to the API server", self.pod.name()), within, || {
            none(self.pod.host(), &of_agent) && none(cluster.outside(), &of_server)
        })
    }

    /// Deletes the pod and calls its hook, `lastsyn drain`, as a kubelet does at once.
    ///
    /// # Errors
    ///
    /// When the API server does not take the deletion, or the hook does not start.
    pub fn delete(&self) -> Result<Stopping<'_>> {
        self.delete_with(&[])
    }

    /// The same with further arguments of the hook.
    ///
    /// # Errors
    ///
    /// When the API server does not take the deletion, or the hook does not start.
    pub fn delete_with(&self, arguments: &[&str]) -> Result<Stopping<'_>> {
        let deleted_at = monotonic_now();
        self.pod.delete()?;
        let called_at = monotonic_now();
        let hook = self.agent.hook(["--json"].iter().chain(arguments).copied())?;
        Ok(Stopping { workload: self, hook, deleted_at, called_at })
    }

    /// Calls the hooks of a pod that nobody has deleted, as a kubelet does whose node shuts down or has too little left:
    /// those of all containers at once, the agent's own among them where it has one.
    ///
    /// # Errors
    ///
    /// When a hook does not start, or the agent's own fails.
    pub fn stop(&self, own_hook: bool) -> Result<Stopping<'_>> {
        let called_at = monotonic_now();
        let hook = self.agent.hook(["--json"])?;
        if own_hook {
            self.agent.hook(["--mark", "--strict"])?.wait_for_success(SOON)?;
        }
        Ok(Stopping { workload: self, hook, deleted_at: called_at, called_at })
    }
}

// === impl Stopping ===

impl Stopping<'_> {
    /// Whether the hook still holds.
    ///
    /// # Errors
    ///
    /// When the kernel does not know its process.
    pub fn holds(&self) -> Result<bool> {
        self.hook.is_running()
    }

    /// Waits for the hook, and then ends the containers as a kubelet does: the server's stop signal, then the sidecar's.
    ///
    /// # Errors
    ///
    /// When the hook, the server or the agent does not end in time, or the hook gave no verdict.
    pub fn finish(self, within: Duration) -> Result<Ended> {
        let ended = self.verdict(within)?;
        let Workload { agent, server, pod } = self.workload;
        server.soft_stop()?;
        server.wait(SOON)?;
        agent.terminate()?;
        await_condition("the agent's end", SOON, || agent.process().is_running().is_ok_and(|running| !running))?;
        pod.finish()?;
        Ok(ended)
    }

    /// Waits for the hook alone: the server still serves.
    ///
    /// # Errors
    ///
    /// When it does not end in time, or gave no verdict.
    pub fn verdict(&self, within: Duration) -> Result<Ended> {
        let agent = &self.workload.agent;
        self.hook
            .wait_for_success(within)
            .with_context(|| format!("the agent wrote:\n{}", agent.process().report()))?;
        let at = monotonic_now();
        let text = self.hook.text(Stream::Output);
        let verdict = serde_json::from_str(&text).with_context(|| format!("the hook's verdict is `{text}`"))?;
        Ok(Ended { verdict, took: Duration::from_nanos(at.saturating_sub(self.called_at)), at })
    }
}

// === impl Ended ===

impl Ended {
    /// The verdict's reason.
    pub fn reason(&self) -> &str {
        self.verdict.get("reason").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it ended by what was observed of every Service and node: with a claim, or, where nothing wakes a kube-proxy
    /// after the agent has first asked it, with nodes that were only waited for.
    pub fn by_evidence_or_wait(&self) -> bool {
        let only_waited = |entry: &Value| {
            entry.get("what").and_then(Value::as_str) == Some("sync")
                && entry.get("why").and_then(Value::as_str) == Some("only waited for")
        };
        let not_observed = self.verdict.get("notObserved").and_then(Value::as_array);
        match self.reason() {
            "routed-away" | "synced" => true,
            "unverified" => not_observed.is_some_and(|entries| entries.iter().all(only_waited)),
            _ => false,
        }
    }
}
