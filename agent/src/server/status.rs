//! `GET /v1/status`: one look at the agent.

use serde::{Deserialize, Serialize};

use crate::{
    core::{
        listener::Family,
        verdict::{Condition, Listener, Nodes, Sources, Strategy, Verdict},
    },
    sensor::ProbeStatus,
};

/// What the agent is doing now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The agent's version.
    pub version: String,
    /// How long it has been running.
    pub uptime_ms: u64,
    /// What it is doing.
    pub state: State,
    /// Where its counts come from.
    pub sensor: SensorStatus,
    /// Every watched listener; counts since it is watched.
    pub listeners: Vec<Listener>,
    /// The connections of the watched ports; `null` where the kernel does not tell.
    #[serde(default)]
    pub connections: Option<Vec<Connections>>,
    /// The drain under way.
    pub drain: Option<DrainStatus>,
    /// Who sends attempts in the drain under way; `null` without one, and where it is not kept.
    #[serde(default)]
    pub sources: Option<Sources>,
    /// How many drains have ended.
    pub drains_ended: u64,
    /// The last drain's result.
    pub verdict: Option<Verdict>,
    /// What happened, oldest first; bounded.
    pub journal: Vec<JournalLine>,
}

/// What the agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No drain; counting.
    Serving,
    /// A hook is held.
    Draining,
    /// The last drain has ended, none runs.
    Ended,
}

impl State {
    /// All.
    pub const ALL: [Self; 3] = [Self::Serving, Self::Draining, Self::Ended];

    /// The name that the status and the metrics use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Ended => "ended",
        }
    }
}

/// The sensor's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SensorStatus {
    /// How SYNs are seen.
    pub strategy: Strategy,
    /// Whether it is known to see everything that it can see.
    pub healthy: bool,
    /// Whether it can tell the pod's SYNs from those of others; not so where the pod shares the node's network and no control
    /// group of the pod can be had.
    #[serde(default = "scoped")]
    pub scoped: bool,
    /// Why not.
    pub why: Option<String>,
    /// For how long, since the agent started, an interface may have been up and not watched: never less than it was.
    /// `null` where interfaces are not watched.
    #[serde(default)]
    pub blind_ms: Option<u64>,
    /// The watched interfaces by name.
    pub interfaces: Vec<String>,
    /// How kubelet's probes are told from clients.
    #[serde(default)]
    pub probes: ProbeStatus,
    /// The better strategies that could not be had, best first.
    #[serde(default)]
    pub passed_over: Vec<PassedOver>,
}

/// An agent that does not say so is of a version that knows no other.
fn scoped() -> bool {
    true
}

/// A strategy that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PassedOver {
    /// Which.
    pub strategy: Strategy,
    /// Why not, and what the operator can do.
    pub why: String,
}

/// A drain under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DrainStatus {
    /// Wall-clock time of the hook's call, RFC 3339 in UTC.
    pub started_at: String,
    /// Since the hook's call.
    pub elapsed_ms: u64,
    /// It ends at the latest after this.
    pub max_wait_ms: u64,
    /// How many callers wait.
    pub callers: u32,
    /// What holds it now.
    pub holding: Vec<Condition>,
    /// Every condition of its end, in the order of the rules; those of an older agent are not told.
    #[serde(default)]
    pub conditions: Vec<ConditionStatus>,
    /// How the nodes stand, summed over the families that the pod is listed in.
    #[serde(default)]
    pub nodes: Nodes,
}

/// A condition of the end of the drain under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionStatus {
    /// The rule: `E1` to `E6`, and `E2a`.
    pub rule: String,
    /// Which.
    pub condition: Condition,
    /// Whether it holds the end now.
    pub holds: bool,
    /// For how long it has, or has not.
    pub since_ms: u64,
    /// How long it holds at least, if nothing new comes; `null` where that is not known, and where it does not hold.
    pub left_ms: Option<u64>,
    /// What it waits for, in words.
    pub waits_for: String,
}

/// The connections of one watched TCP port over one family, counted at most a second before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connections {
    /// The port.
    pub port: u16,
    /// The family.
    pub family: Family,
    /// Handshakes under way.
    pub handshakes: u64,
    /// Established connections, those that nobody has accepted yet included.
    pub established: u64,
    /// How many of both families together wait to be accepted; `null` where nothing listens.
    pub accept_queue: Option<u64>,
}

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalLine {
    /// Milliseconds since the agent started.
    pub at_ms: u64,
    /// What happened, in words.
    pub what: String,
}
