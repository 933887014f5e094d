//! What the fence shows of itself: by itself an answer to "which node's kube-proxy is late?".

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::rounds::{Looked, Reach, Rounds};
use crate::core::{
    clock::{Monotonic, millis},
    cluster::NodeName,
    listener::Family,
};

/// How many times of each node and family are kept.
const KEPT: usize = 64;

/// `GET /v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FenceStatus {
    /// Its version.
    pub version: String,
    /// Its name among the replicas.
    pub identity: String,
    /// Whether it writes now, which it does while somebody asks.
    pub writes: bool,
    /// How many answers are under way.
    pub answers: u32,
    /// What keeps it from serving, per family.
    pub trouble: Vec<FamilyTrouble>,
    /// Each node and family.
    pub nodes: Vec<NodeLook>,
}

/// Why a family cannot be fenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FamilyTrouble {
    /// Which.
    pub family: Family,
    /// Why, in words.
    pub why: String,
}

/// One node over one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeLook {
    /// Its name.
    pub node: String,
    /// The family.
    pub family: Family,
    /// `shows`: its rules show what is written; `late`: not yet; `silent` and `stranger`: see `why`; `resting`: nobody asks.
    pub state: NodeStands,
    /// Why, in words, where it shows nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is written for it: a number that goes round.
    pub generation: Option<u8>,
    /// How long ago it last showed a marker.
    pub shown_ago_ms: Option<u64>,
    /// By what: always `health-check-node-port` in this version.
    pub way: String,
    /// From a marker's write to its effect: the last, and quantiles of the last 64.
    pub lag: Option<Lag>,
}

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeStands {
    /// Its rules show what is written.
    Shows,
    /// They do not yet.
    Late,
    /// It does not answer.
    Silent,
    /// What answers is of no use.
    Stranger,
    /// Nobody asks.
    Resting,
}

/// From a marker's write to its effect, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lag {
    /// The last.
    pub last_ms: u64,
    /// The median.
    pub p50_ms: u64,
    /// 90 % are not longer.
    pub p90_ms: u64,
    /// The longest.
    pub max_ms: u64,
    /// Of how many.
    pub count: usize,
}

/// The times of all nodes, those of the last ones.
#[derive(Debug, Default)]
pub(super) struct Lags(BTreeMap<(NodeName, Family), VecDeque<u64>>);

impl Lags {
    /// A marker showed after so long.
    pub(super) fn add(&mut self, node: &NodeName, family: Family, took_ms: u64) {
        let of_node = self.0.entry((node.clone(), family)).or_default();
        if of_node.len() == KEPT {
            of_node.pop_front();
        }
        of_node.push_back(took_ms);
    }

    /// Forgets all nodes but those of the list.
    pub(super) fn keep(&mut self, rounds: &Rounds) {
        let names = rounds.names();
        self.0.retain(|(name, _), _| names.contains(name));
    }

    fn of(&self, node: &NodeName, family: Family) -> Option<Lag> {
        let of_node = self.0.get(&(node.clone(), family))?;
        let mut sorted: Vec<u64> = of_node.iter().copied().collect();
        sorted.sort_unstable();
        // The nearest rank: the smallest that so many percent do not exceed.
        let rank = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Lag {
            last_ms: *of_node.back()?,
            p50_ms: rank(50)?,
            p90_ms: rank(90)?,
            max_ms: rank(100)?,
            count: sorted.len(),
        })
    }
}

/// Every node and family.
pub(super) fn nodes(rounds: &Rounds, lags: &Lags, writes: bool, now: Monotonic) -> Vec<NodeLook> {
    let of = |family: Family| rounds.looks(family).map(move |looked| node(&looked, family, lags, writes, now));
    Family::ALL.into_iter().flat_map(of).collect()
}

fn node(looked: &Looked<'_>, family: Family, lags: &Lags, writes: bool, now: Monotonic) -> NodeLook {
    let (state, why) = match looked.reach {
        _ if !writes => (NodeStands::Resting, None),
        Reach::Silent(why) => (NodeStands::Silent, Some(why.clone())),
        Reach::Stranger(why) => (NodeStands::Stranger, Some(why.clone())),
        Reach::Answers | Reach::Unknown if looked.shows => (NodeStands::Shows, None),
        Reach::Answers | Reach::Unknown => (NodeStands::Late, None),
    };
    NodeLook {
        node: looked.name.to_string(),
        family,
        state,
        why,
        generation: looked.written.map(super::generation::Generation::endpoints),
        shown_ago_ms: looked.last.map(|(at, _)| millis(now.since(at))),
        way: "health-check-node-port".to_owned(),
        lag: lags.of(looked.name, family),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_last_ones() {
        let (mut lags, node) = (Lags::default(), NodeName("a".to_owned()));
        for took in (1..=200).rev() {
            lags.add(&node, Family::V4, took);
        }
        let lag = lags.of(&node, Family::V4).expect("some");
        assert_eq!((lag.last_ms, lag.p50_ms, lag.p90_ms, lag.max_ms, lag.count), (1, 32, 58, 64, 64));
        assert_eq!(lags.of(&node, Family::V6), None);
    }
}
