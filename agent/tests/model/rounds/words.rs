//! A case and a trace in words, for people.

use std::fmt;

use super::{
    Case, Judge, Limits,
    node::{MARKER, Step},
    world::{Action, World},
};

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => f.write_str("time passes"),
            Self::Withdraw(drain) => write!(f, "API: pod {} is withdrawn", pod(*drain)),
            Self::Ask(drain) => write!(f, "agent {}: asks the fence", pod(*drain)),
            Self::Begin => f.write_str("fence: sends a marker"),
            Self::Arrives => f.write_str("API: has the fence's request"),
            Self::OrphanArrives => f.write_str("API: has the request of the writer before"),
            Self::Acknowledged => f.write_str("fence: has the API server's answer"),
            Self::Lost => f.write_str("fence: gets no answer, and reads what the API has"),
            Self::TakesOver => f.write_str("fence: another writer takes over"),
            Self::Look => f.write_str("fence: looks at the node"),
            Self::Tell(drain) => write!(f, "agent {}: is told that the node is confirmed", pod(*drain)),
            Self::Node(step) => write!(f, "kube-proxy: {step}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handle => f.write_str("its handlers take the next write"),
            Self::HandleListed(MARKER) => f.write_str("its handlers take the marker of the list"),
            Self::HandleListed(drain) => write!(f, "its handlers take pod {}'s slice of the list", pod(*drain)),
            Self::Relist(length) => write!(f, "its watch is lost, and a list with {} replaces it", writes(*length)),
            Self::StartSync => f.write_str("a sync takes its snapshot"),
            Self::EndSync => f.write_str("the sync has written all"),
            Self::Die => f.write_str("the process dies"),
            Self::Start => f.write_str("a process starts"),
            Self::FirstList(length) => write!(f, "a list with {} is its first", writes(*length)),
        }
    }
}

fn pod(drain: usize) -> char {
    if drain == 0 { 'A' } else { 'B' }
}

fn writes(length: u8) -> String {
    match length {
        0 => "no write".to_owned(),
        1 => "the first write".to_owned(),
        _ => format!("the first {length} writes"),
    }
}

/// One step of a trace, with its tick.
pub(crate) fn step(before: &World, action: Option<Action>, after: &World) -> String {
    let lacks = |world: &World| {
        let of = |(number, drain): (usize, &super::world::Drain)| {
            drain.told && drain.withdrawn.is_some_and(|at| world.node.rules[number] < at)
        };
        world.drains.iter().enumerate().any(of)
    };
    let wrong = if !lacks(before) && lacks(after) { "; the node's rules do not have its withdrawal" } else { "" };
    let action = action.map(|action| action.to_string()).unwrap_or_default();
    format!("{} {action}{wrong}", after.now)
}

impl Case {
    pub(crate) fn rule_in_words(self) -> String {
        match self.judge {
            Judge::Rounds => "the fence as it is built",
            Judge::OneMarker => "the fence as it is built, with one marker",
            Judge::TheFirstAnswer => "the fence as it is built, with an answer for drains that asked later",
        }
        .to_owned()
    }

    pub(crate) fn world_in_words(self) -> String {
        let Limits { ticks, drains, markers, restarts, relists, lost, leaders } = self.limits;
        let said = [
            (ticks, "tick"),
            (drains, "drain"),
            (markers, "marker"),
            (restarts, "restart"),
            (relists, "relist"),
            (lost, "lost answer"),
            (leaders, "other writer"),
        ];
        let words = said.into_iter().filter(|(count, _)| *count > 0);
        words
            .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
