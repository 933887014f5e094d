//! What an agent and the fence say to each other: `POST /v1/fence` with a [`Question`], answered by [`Line`]s of JSON, one
//! each, for as long as it takes. Both take what they do not know for nothing, so that a neighbour of another version does.

use serde::{Deserialize, Serialize};

use crate::core::{confirm::OperatingSystem, listener::Family};

/// Where the fence is asked.
pub const PATH: &str = "/v1/fence";

/// How often a line comes at the least, in milliseconds, so that an agent knows that its fence lives.
pub const ALIVE_EVERY_MS: u64 = 1000;

/// What an agent asks: whether everything that was written by now is in the nodes' rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// In which families' rules.
    pub families: Vec<Family>,
    /// How long after the question the process that showed it is still to live (C11), in milliseconds.
    pub stand_ms: u64,
    /// What the agent's verdict will say is assumed of `firstList`, in milliseconds. A fence whose markers need a shorter
    /// bound refuses.
    pub first_list_ms: u64,
    /// Who asks, for people: `namespace/name`.
    #[serde(default)]
    pub pod: String,
}

/// One line of an answer. Times are in milliseconds after the question arrived, by the fence's clock: an agent adds them to
/// the time at which it sent the question, and so is never too late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// The question is taken.
    #[serde(rename_all = "camelCase")]
    Taken {
        /// Which fence.
        fence: String,
    },
    /// The cluster's nodes.
    #[serde(rename_all = "camelCase")]
    Nodes {
        /// The list was read consistently, and the reading began at this time or later.
        as_of_ms: u64,
        /// All of them; `null`: as before.
        nodes: Option<Vec<NodeLine>>,
    },
    /// A node.
    Node(NodeState),
    /// Nothing new.
    Alive,
    /// Every node is confirmed, and the list of nodes has stood long enough.
    Done,
    /// This fence serves nobody any more: another one does, or will.
    Moved,
    /// It cannot write markers; the question is not answered.
    Failed {
        /// Why, in words.
        why: String,
    },
    /// Of another version.
    #[serde(other)]
    Unknown,
}

/// A node of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLine {
    /// Its name.
    pub name: String,
    /// `linux` or `windows`; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeState {
    /// Its name.
    pub node: String,
    /// In which family's rules.
    pub family: Family,
    /// How.
    pub state: Stands,
    /// Where it is confirmed: the process was asked at this time or later, over the connection over which it had shown both
    /// markers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stood_ms: Option<u64>,
    /// Where it is not: why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// See [`NodeState`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stands {
    /// Its rules have everything.
    Confirmed,
    /// They may yet.
    Pending,
    /// It will not show anything.
    Unobservable,
    /// Of another version.
    #[serde(other)]
    Unknown,
}

/// A refusal's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalBody {
    /// Why, in words.
    pub error: String,
    /// Where the fence is that serves, if another one does: `ADDRESS:PORT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

/// The name of an operating system on the wire.
pub(super) fn os_name(system: OperatingSystem) -> Option<String> {
    match system {
        OperatingSystem::Linux => Some("linux".to_owned()),
        OperatingSystem::Windows => Some("windows".to_owned()),
        OperatingSystem::Unknown => None,
    }
}

/// The operating system of a name.
pub(super) fn os_of(name: Option<&str>) -> OperatingSystem {
    match name {
        Some("linux") => OperatingSystem::Linux,
        Some("windows") => OperatingSystem::Windows,
        _ => OperatingSystem::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_another_version_are_nothing() {
        let read = |text: &str| serde_json::from_str::<Line>(text).expect(text);
        assert_eq!(read(r#"{"type":"weather","sky":"blue"}"#), Line::Unknown);
        assert_eq!(read(r#"{"type":"alive","since":3}"#), Line::Alive);
        let of = r#"{"type":"node","node":"a","family":"IPv6","state":"confirmed","stoodMs":2010,"by":"x"}"#;
        let expected = NodeState {
            node: "a".to_owned(),
            family: Family::V6,
            state: Stands::Confirmed,
            stood_ms: Some(2010),
            why: None,
        };
        assert_eq!(read(of), Line::Node(expected));
        let Line::Node(state) = read(r#"{"type":"node","node":"a","family":"IPv4","state":"drifting"}"#) else {
            panic!("a node")
        };
        assert_eq!(state.state, Stands::Unknown);
    }

    #[test]
    fn lines_are_as_others_read_them() {
        let text = |line: &Line| serde_json::to_string(line).expect("JSON");
        assert_eq!(text(&Line::Alive), r#"{"type":"alive"}"#);
        let nodes = Some(vec![NodeLine { name: "a".to_owned(), os: os_name(OperatingSystem::Linux) }]);
        let expected = r#"{"type":"nodes","asOfMs":5,"nodes":[{"name":"a","os":"linux"}]}"#;
        assert_eq!(text(&Line::Nodes { as_of_ms: 5, nodes }), expected);
    }
}
