//! Who sent the attempts of a drain. It is kept beside the decision, which does not know it.

use serde::{Deserialize, Serialize};

use super::number_and_protocol;
use crate::core::listener::{Family, Port};

/// Who sent the attempts of a drain, as far as the sensor tells it: of classes `new`, `retransmit`, `refused` and `join`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Sources {
    /// The newest, newest first; at most [`Sources::MOST`].
    pub list: Vec<Source>,
    /// How many more there were.
    pub more: u64,
    /// How many times the sensor forgot a source of a listener, as more came than it keeps at once. What came of them is in
    /// the listeners' counts, and in no source.
    pub forgotten: u64,
}

impl Sources {
    /// How many sources a verdict has.
    pub const MOST: usize = 20;
}

/// A source of one listener's attempts over one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The port; written as its number (`port`) and its protocol (`protocol`).
    #[serde(flatten, with = "number_and_protocol")]
    pub port: Port,
    /// The family.
    pub family: Family,
    /// An address of a node or a pod, or a network. Of IPv6 the first 64 bits, but of a node the whole address; of those
    /// outside the cluster 24 bits of IPv4 and 48 of IPv6, unless `report.sources` is `full`.
    pub from: String,
    /// The node whose address it is, or whose pods'; `null` where it is neither, or nobody knows.
    pub node: Option<String>,
    /// How many, since the hook's call.
    pub attempts: u64,
    /// How many of them since the agent heard that no slice and Service leads to the pod any more; `null` before that.
    pub since_withdrawal: Option<u64>,
    /// How long ago the last one came.
    pub last_ago_ms: u64,
}
