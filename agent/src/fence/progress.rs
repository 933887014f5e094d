//! What an agent has been told of its question, and what is new. Pure.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use super::{
    protocol::{Line, NodeLine, NodeState, Stands, os_name},
    rounds::{CallId, Rounds, State},
};
use crate::core::{
    clock::{Monotonic, millis},
    cluster::NodeName,
    event::ByFamily,
};

/// Of one answer.
#[derive(Debug, Default)]
pub(super) struct Progress {
    nodes: Option<(Vec<NodeName>, Monotonic)>,
    states: ByFamily<BTreeMap<NodeName, (Stands, Cow<'static, str>)>>,
    told_at: Option<Monotonic>,
    pub(super) done: bool,
}

impl Progress {
    /// The lines that are new since the last time. A confirmation that was told stays so: the agent's last relevant change
    /// came before its question.
    pub(super) fn news(&mut self, call: CallId, rounds: &Rounds, now: Monotonic) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some(asked_at) = rounds.asked_at(call) else { return lines };
        lines.extend(self.list(asked_at, rounds, rounds.list_stands(call)));
        let mut open = false;
        // Before it knows of a node, an agent takes nothing that is said of it.
        let listed = self.nodes.is_some();
        for (name, family, state) in rounds.states(call).filter(|_| listed) {
            let told = self.states.get(family).get(name);
            if told.is_some_and(|(stands, _)| *stands == Stands::Confirmed) {
                continue;
            }
            let (stands, stood_ms, why) = match state {
                State::Confirmed { stood_for } => (Stands::Confirmed, Some(millis(stood_for)), Cow::Borrowed("")),
                State::Pending(why) => (Stands::Pending, None, why),
                State::Unobservable(why) => (Stands::Unobservable, None, why),
            };
            open |= stands != Stands::Confirmed;
            if told.is_some_and(|(told, because)| *told == stands && *because == why) {
                continue;
            }
            let text = Some(why.to_string()).filter(|why| !why.is_empty());
            lines.push(Line::Node(NodeState { node: name.0.clone(), family, state: stands, stood_ms, why: text }));
            self.states.get_mut(family).insert(name.clone(), (stands, why));
        }
        if listed && !open && rounds.list_stands(call) && !self.done {
            self.done = true;
            lines.push(Line::Done);
        }
        let quiet =
            self.told_at.is_none_or(|at| now.since(at) >= Duration::from_millis(super::protocol::ALIVE_EVERY_MS));
        if lines.is_empty() && quiet {
            lines.push(Line::Alive);
        }
        if !lines.is_empty() {
            self.told_at = Some(now);
        }
        lines
    }

    /// The list of nodes, where it has changed, or has come to stand long enough. One that was read before the question is
    /// nothing to the agent.
    fn list(&mut self, asked_at: Monotonic, rounds: &Rounds, stands: bool) -> Option<Line> {
        let (nodes, as_of) = rounds.listed().filter(|(_, as_of)| *as_of >= asked_at)?;
        let nodes: Vec<_> = nodes.collect();
        let names: Vec<NodeName> = nodes.iter().map(|node| node.name.clone()).collect();
        let as_before = self.nodes.as_ref().is_some_and(|(told, _)| *told == names);
        // That the list has grown older tells the agent something once.
        let newer = stands && self.nodes.as_ref().is_some_and(|(_, told)| *told < as_of);
        if as_before && !newer {
            return None;
        }
        self.nodes = Some((names, as_of));
        let line = |node: crate::core::cluster::Node| NodeLine { name: node.name.0, os: os_name(node.system) };
        let list = (!as_before).then(|| nodes.into_iter().map(line).collect());
        Some(Line::Nodes { as_of_ms: millis(as_of.since(asked_at)), nodes: list })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::{
            cluster::{ConnectionId, Node},
            confirm::OperatingSystem,
            listener::Family,
        },
        fence::{generation::Generation, rounds::Pace},
    };

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn an_answer_tells_each_thing_once_and_that_it_lives() {
        let pace = Pace { spacing: Duration::from_secs(1), gather: Duration::ZERO };
        let (mut rounds, mut progress) = (Rounds::new(pace), Progress::default());
        let (node, call) = (NodeName("a".to_owned()), CallId(1));
        let nodes = [Node { name: node.clone(), system: OperatingSystem::Linux }];
        rounds.nodes(&nodes, at(0));
        rounds.loaded(Family::V4, &BTreeMap::from([(node.clone(), Generation::FIRST)]), at(0));
        rounds.opened(&node, Family::V4, ConnectionId(1));
        rounds.ask(call, &[Family::V4], Duration::from_secs(2), at(10));

        assert_eq!(progress.news(call, &rounds, at(10)), [Line::Alive], "the list is older than the question");
        rounds.nodes(&nodes, at(20));
        let list = progress.news(call, &rounds, at(21));
        assert!(
            matches!(
                list.as_slice(),
                [Line::Nodes { as_of_ms: 10, nodes: Some(_) }, Line::Node(NodeState { state: Stands::Pending, .. })]
            ),
            "{list:?}"
        );
        assert!(progress.news(call, &rounds, at(600)).is_empty());
        assert_eq!(progress.news(call, &rounds, at(1100)), [Line::Alive]);

        for endpoints in [1, 2, 3] {
            let now = at(1000 * endpoints);
            rounds.answered(&node, Family::V4, ConnectionId(1), now, endpoints, now);
            if let Some(write) = rounds.begin_write(Family::V4, now) {
                rounds.written(Family::V4, write.id, now);
            }
        }
        let confirmed = progress.news(call, &rounds, at(3000));
        assert!(
            matches!(
                confirmed.as_slice(),
                [Line::Node(NodeState { state: Stands::Confirmed, stood_ms: Some(2990), .. })]
            ),
            "the list is not new enough yet: {confirmed:?}"
        );
        rounds.closed(&node, Family::V4, ConnectionId(1));
        assert!(progress.news(call, &rounds, at(3001)).is_empty(), "what was confirmed stays so");
        rounds.nodes(&nodes, at(3010));
        let done = progress.news(call, &rounds, at(3011));
        assert_eq!(done, [Line::Nodes { as_of_ms: 3000, nodes: None }, Line::Done]);
        assert!(progress.news(call, &rounds, at(3012)).is_empty());
    }
}
