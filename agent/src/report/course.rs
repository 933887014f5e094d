//! The format of a report: JSON, camelCase, times in milliseconds from the hook's call.

use serde::{Deserialize, Serialize};

use crate::{
    config::Config,
    core::{
        listener::{Family, Port},
        verdict::{Condition, Nodes, Verdict},
    },
};

/// The format's number. What a later version adds, an earlier one passes over; a format that means something else gets another.
pub const FORMAT: u32 = 1;

/// One drain's course.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The agent's version.
    pub agent: String,
    /// The pod; what of it the agent was told.
    #[serde(default)]
    pub pod: Pod,
    /// How the drain ended, with what came after it as far as it was known when this was written.
    pub verdict: Verdict,
    /// When each condition held the end.
    pub conditions: Vec<Held>,
    /// Attempts over time, the time after the end included.
    pub attempts: Attempts,
    /// How the nodes stood, at each change.
    pub nodes: Vec<NodesAt>,
    /// What happened, oldest first.
    pub entries: Vec<Entry>,
    /// What had to be left out.
    #[serde(default)]
    pub left_out: LeftOut,
}

/// Which pod it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Its namespace; empty where the agent was not told.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its node.
    pub node: String,
}

impl Pod {
    /// As the agent was told.
    pub fn of(config: &Config) -> Self {
        let crate::config::Pod { namespace, name, node_name, .. } = &config.pod;
        Self { namespace: namespace.clone(), name: name.clone(), node: node_name.clone() }
    }
}

/// When one condition held the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Which.
    pub condition: Condition,
    /// From when to when; in order, without overlap.
    pub spans: Vec<(u64, u64)>,
}

/// Attempts over time. All lanes have bins of the same width; bins at the end of a lane that are not there are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempts {
    /// How wide a bin is.
    pub every_ms: u64,
    /// One for each listener and family.
    pub lanes: Vec<Lane>,
}

/// Attempts to one listener over one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// The port, as `443` or `"443/udp"`.
    pub port: Port,
    /// The family.
    pub family: Family,
    /// Attempts that count (E2), in each bin.
    pub counting: Vec<u64>,
    /// Those of them that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<u64>,
}

/// How the nodes stood from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodesAt {
    /// From when on.
    pub at_ms: u64,
    /// How many were in which state, summed over the families that the pod is listed in.
    #[serde(flatten)]
    pub nodes: Nodes,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When.
    pub at_ms: u64,
    /// What it is about.
    pub about: About,
    /// What, in words.
    pub what: String,
}

/// What an entry is about: the lanes of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// The hook: its calls and its answer, and the signals.
    Hook,
    /// A listener.
    Listener,
    /// The sensor.
    Sensor,
    /// Services that lead to the pod.
    Service,
    /// Nodes, the fence, the API server.
    Node,
    /// What the server in the pod was told, its readiness among it.
    Server,
    /// Of another version.
    #[serde(other)]
    Other,
}

/// What had to be left out, so that a report stays as small as it is to be: how many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeftOut {
    /// Entries.
    pub entries: u64,
    /// Changes of how the nodes stood.
    pub nodes: u64,
    /// Times at which a condition held: those of before and after are told as one with what lay between them.
    pub spans: u64,
    /// Lanes of attempts.
    pub lanes: u64,
    /// Listeners of the verdict.
    pub listeners: u64,
    /// Services of the verdict.
    pub services: u64,
    /// Nodes' evidence of the verdict.
    pub evidence: u64,
    /// Sources of the verdict.
    pub sources: u64,
    /// What the verdict says was not observed. There was more than it names.
    pub not_observed: u64,
    /// Texts that were cut short.
    pub texts: u64,
}

impl LeftOut {
    /// Whether everything is there.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Report {
    /// The last moment of which it tells: the end of the drain, or of the last bin with an attempt after that.
    pub fn until_ms(&self) -> u64 {
        let bins = self.attempts.lanes.iter().map(|lane| lane.counting.len()).max().unwrap_or(0) as u64;
        let entries = self.entries.last().map_or(0, |entry| entry.at_ms);
        self.verdict.duration_ms.max(bins.saturating_mul(self.attempts.every_ms)).max(entries)
    }

    /// The sum of all lanes over time: attempts that count, bin by bin.
    pub fn sum(&self) -> Vec<u64> {
        let longest = self.attempts.lanes.iter().map(|lane| lane.counting.len()).max().unwrap_or(0);
        let mut sum = vec![0; longest];
        for lane in &self.attempts.lanes {
            for (sum, count) in sum.iter_mut().zip(&lane.counting) {
                *sum += count;
            }
        }
        sum
    }
}
