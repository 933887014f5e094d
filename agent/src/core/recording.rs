//! What a drain was decided from, so that the decision can be made again. The [`journal`](super::journal) tells people
//! what happened; this is what the core took in.

use std::sync::Arc;

use super::{
    clock::Monotonic,
    cluster::{ClusterEvent, ReadOutcome},
    drain::Core,
    event::{Event, Evidence},
    verdict::Verdict,
};

/// How much is kept, in units of some hundred bytes: at most about 4 MiB.
const CAPACITY: usize = 40_000;

/// Everything that one drain was decided from.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The core as it was before the hook's call.
    from: Box<Core>,
    inputs: Vec<(Monotonic, Event)>,
    weight: usize,
}

/// What is kept of the last drain, or of the one under way.
#[derive(Clone, Debug, Default)]
pub(super) enum Kept {
    /// There was no drain yet.
    #[default]
    Nothing,
    /// Everything.
    All(Recording),
    /// There was more than is kept.
    TooMuch,
}

impl Recording {
    /// Makes the decision again. `None` if the drain had not ended.
    pub fn replay(&self) -> Option<Arc<Verdict>> {
        let mut core = Core::clone(&self.from);
        for (at, event) in &self.inputs {
            core.handle(event.clone(), *at);
            while core.poll().is_some() {}
        }
        core.verdict.filter(|_| core.drain.is_none())
    }
}

impl Kept {
    pub(super) fn take_in(&mut self, event: &Event, now: Monotonic) {
        let Self::All(recording) = self else { return };
        recording.weight = recording.weight.saturating_add(weight(event));
        if recording.weight > CAPACITY {
            *self = Self::TooMuch;
        } else {
            recording.inputs.push((now, event.clone()));
        }
    }
}

impl Core {
    /// Keeps what happens, from the hook's call to the end.
    pub(super) fn record(&mut self, event: &Event, now: Monotonic) {
        if matches!(event, Event::HookCalled { .. }) && self.drain.as_ref().is_none_or(|drain| now >= drain.bound) {
            self.recording = Kept::Nothing;
            let mut from = Box::new(self.clone());
            from.journal = super::journal::Journal::default();
            self.recording = Kept::All(Recording { from, inputs: Vec::new(), weight: 0 });
        } else if self.drain.is_none() {
            return;
        }
        self.recording.take_in(event, now);
    }

    /// What the last drain, or the one under way, was decided from; `None` before the first, and where it was too much to
    /// be kept.
    pub fn recording(&self) -> Option<&Recording> {
        match &self.recording {
            Kept::All(recording) => Some(recording),
            Kept::Nothing | Kept::TooMuch => None,
        }
    }
}

/// In units of some hundred bytes.
pub(super) fn weight(event: &Event) -> usize {
    match event {
        Event::Evidence(evidence) => of_evidence(evidence),
        Event::Cluster(_, event) => of_cluster(event),
        Event::Clock
        | Event::HookCalled { .. }
        | Event::HookLeft { .. }
        | Event::Terminate
        | Event::OwnHookCalled
        | Event::MaxWaitKnown(_)
        | Event::PodRead(..)
        | Event::Told(..) => 1,
    }
}

fn of_evidence(evidence: &Evidence) -> usize {
    let connections = |sockets: &super::event::Sockets| {
        let connections = sockets.connections.as_ref();
        connections
            .map_or(0, |connections| connections.handshakes.len() + connections.established.iter().flatten().count())
    };
    let sockets = evidence.sockets.as_ref().map_or(0, |sockets| sockets.listeners.len() + connections(sockets));
    8 + 4 * evidence.attempts.len() + sockets
}

fn of_cluster(event: &ClusterEvent) -> usize {
    match event {
        ClusterEvent::SlicesListed(slices) => slices.iter().map(|slice| 4 + 3 * slice.endpoints.len()).sum(),
        ClusterEvent::SliceWritten(slice) => 4 + 3 * slice.endpoints.len(),
        ClusterEvent::ServicesListed(services) => 4 * services.len(),
        ClusterEvent::NodesListed(nodes) => nodes.len(),
        ClusterEvent::ConsistentRead(_, ReadOutcome::Shows(snapshot)) => {
            2 * (snapshot.slices.len() + snapshot.services.len()) + snapshot.nodes.as_ref().map_or(0, Vec::len)
        }
        _ => 3,
    }
}
