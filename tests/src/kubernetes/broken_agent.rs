//! Pods whose agent is broken in one of the ways in which a container can be, on the node that has a kubelet.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    Cluster, KubeletPod,
    pod_template::{AGENT, WEB, agent, drain, pod, web},
};

/// An image that the node does not have, and that nobody gets.
pub const ABSENT_IMAGE: &str = "lab.local/absent:1";
/// No end may come of it: it is longer than any test waits.
const GRACE_SECONDS: u32 = 300;
/// The `ServiceAccount` of the pods.
const ACCOUNT: &str = "agent";

/// How the agent is put into the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As an init container that keeps running (KEP-753).
    NativeSidecar,
    /// As a container beside the server.
    Container,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its image is not to be had.
    NoImage,
    /// It ends some seconds after each start.
    Ends,
    /// Its container's memory fills up some seconds after each start, and the kernel kills it.
    OutOfMemory,
}

/// What a kubelet says of such a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The pod's condition `Ready`.
    pub is_ready: bool,
    /// The server's container.
    pub server: Container,
    /// The agent's container.
    pub agent: Container,
}

/// What a kubelet says of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// Whether its process runs.
    pub is_running: bool,
    /// `ready`.
    pub is_ready: bool,
    /// `restartCount`.
    pub restarts: u64,
    /// Why it waits, where it does.
    pub waits: Option<String>,
    /// Why it last ended, where it has.
    pub ended: Option<String>,
}

// === impl KubeletPod ===

impl<'a> KubeletPod<'a> {
    /// A pod with a server, whose hook holds for so many seconds at most, and a broken agent.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn with_broken_agent(
        cluster: &'a Cluster,
        name: &str,
        (form, fault): (Form, Fault),
        hold_seconds: u32,
    ) -> Result<Self> {
        let mut broken = agent();
        let mut set = |key: &str, value: Value| {
            if let Some(broken) = broken.as_object_mut() {
                broken.insert(key.to_owned(), value);
            }
        };
        match fault {
            Fault::NoImage => set("image", json!(ABSENT_IMAGE)),
            Fault::Ends => set("command", json!(["sh", "-c", "lastsyn run & sleep 3; kill -9 $!; exit 1"])),
            Fault::OutOfMemory => {
                // What a file system in memory holds is the container's, and no process is as large as the agent.
                set("command", json!(["sh", "-c", "(sleep 3; cat /dev/zero > /dev/shm/full) & exec lastsyn run"]));
                set("resources", json!({"limits": {"memory": "48Mi"}}));
            }
        }
        let mut server = web();
        if let Some(server) = server.as_object_mut() {
            server.insert("lifecycle".to_owned(), drain(&["--max-wait", &format!("{hold_seconds}s")]));
        }
        match form {
            Form::NativeSidecar => Self::lasting(cluster, name, &[broken], &[server]),
            Form::Container => {
                if let Some(broken) = broken.as_object_mut() {
                    broken.remove("restartPolicy");
                }
                Self::lasting(cluster, name, &[], &[server, broken])
            }
        }
    }

    /// The same pod without an agent and without a hook.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn without_agent(cluster: &'a Cluster, name: &str) -> Result<Self> {
        Self::lasting(cluster, name, &[], &[web()])
    }

    fn lasting(cluster: &'a Cluster, name: &str, init: &[Value], containers: &[Value]) -> Result<Self> {
        let mut spec = pod(ACCOUNT, init, containers);
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("terminationGracePeriodSeconds".to_owned(), json!(GRACE_SECONDS));
        }
        Self::of(cluster, name, name, &spec)
    }

    /// What the kubelet says of it now.
    ///
    /// # Errors
    ///
    /// When it has gone, or the API server does not answer.
    pub fn standing(&self) -> Result<Standing> {
        let object = self.object()?.with_context(|| format!("{} has gone", self.name()))?;
        Ok(Standing::of(&object))
    }
}

// === impl Standing ===

impl Standing {
    /// What a Pod's object tells.
    pub fn of(pod: &Value) -> Self {
        let list = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let is = |object: &Value, key: &str, value: &str| object.get(key).and_then(Value::as_str) == Some(value);
        let container = |name: &str| {
            let mut statuses = list("/status/containerStatuses").chain(list("/status/initContainerStatuses"));
            statuses.find(|status| is(status, "name", name)).map(Container::of).unwrap_or_default()
        };
        Self {
            is_ready: list("/status/conditions").any(|one| is(one, "type", "Ready") && is(one, "status", "True")),
            server: container(WEB),
            agent: container(AGENT),
        }
    }
}

// === impl Container ===

impl Container {
    fn of(status: &Value) -> Self {
        let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Self {
            is_running: status.pointer("/state/running").is_some(),
            is_ready: status.get("ready").and_then(Value::as_bool) == Some(true),
            restarts: status.get("restartCount").and_then(Value::as_u64).unwrap_or(0),
            waits: text("/state/waiting/reason"),
            ended: text("/state/terminated/reason").or_else(|| text("/lastState/terminated/reason")),
        }
    }
}
