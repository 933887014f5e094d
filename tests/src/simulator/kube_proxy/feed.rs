//! What the watch brought to one process, and what of it the handlers have.

use std::collections::VecDeque;

use super::super::{
    api::{Api, ObjectId, Versions},
    chance::Chance,
    node::Queue,
};

/// One process' informer of the slices.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    queue: Queue,
    /// How many writes the watch has delivered.
    pub(super) received: u32,
    /// What the handlers have.
    pub(super) have: Versions,
    /// What is delivered, and not with the handlers yet: with a version where each has a place of its own.
    waiting: VecDeque<(ObjectId, Option<u32>)>,
}

/// What the handlers have taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) object: ObjectId,
    pub(super) before: u32,
    pub(super) after: u32,
}

impl Feed {
    /// The first list, with the handlers.
    pub(super) fn listed(queue: Queue, received: u32, api: &Api) -> Self {
        Self { queue, received, have: api.versions(received), waiting: VecDeque::new() }
    }

    /// The watch delivers the next write. `Some` where the handlers have it at once.
    pub(super) fn receive(&mut self, api: &Api) -> Option<Taken> {
        let write = api.slices.get(self.received as usize)?;
        self.received += 1;
        match self.queue {
            Queue::InOrder if self.waiting.is_empty() => return self.take(write.object, self.received),
            Queue::InOrder => self.waiting.push_back((write.object, Some(self.received))),
            Queue::DeltaFifo => self.wait(write.object),
        }
        None
    }

    /// A list replaces the watch: what changed is handed to the handlers one by one, by name or in no order.
    pub(super) fn relist(&mut self, api: &Api, chance: &mut Chance) {
        let before = self.received;
        self.received = api.written();
        let versions = api.versions(self.received);
        let mut changed: Vec<ObjectId> =
            (0..versions.len()).filter(|object| versions[*object] > before).map(ObjectId).collect();
        if chance.one_in(2) {
            chance.shuffle(&mut changed);
        }
        for object in changed {
            match self.queue {
                Queue::InOrder => self.waiting.push_back((object, Some(versions[object.0]))),
                Queue::DeltaFifo => self.wait(object),
            }
        }
    }

    /// Whether something waits for the handlers.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The handlers take what waits longest.
    pub(super) fn handle(&mut self, api: &Api) -> Option<Taken> {
        let (object, version) = self.waiting.pop_front()?;
        let version = version.unwrap_or_else(|| api.last_of(object, self.received));
        self.take(object, version)
    }

    fn wait(&mut self, object: ObjectId) {
        if !self.waiting.iter().any(|(waiting, _)| *waiting == object) {
            self.waiting.push_back((object, None));
        }
    }

    fn take(&mut self, object: ObjectId, version: u32) -> Option<Taken> {
        let before = std::mem::replace(&mut self.have[object.0], version);
        (before != version).then_some(Taken { object, before, after: version })
    }
}
