//! What the watch brought to one process, and what of it the handlers have.

use crate::{
    api::{Log, Object, View},
    setting::Queue,
};

/// One process' informer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Feed {
    /// The version up to which the watch delivered.
    received: usize,
    /// Of each object, the write that the handlers have, counted from 1.
    have: [usize; 3],
    /// In order: what a list has replaced and the handlers do not have yet, to be taken in any order. `DeltaFIFO`: the
    /// places.
    queue: Vec<Object>,
}

impl Feed {
    /// The first list, with the handlers.
    pub(crate) fn listed(version: usize, log: &Log) -> Self {
        let have = Object::ALL.map(|object| log.last_of(object, version));
        Self { received: version, have, queue: Vec::new() }
    }

    /// How much of the log was delivered.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// What is queued.
    pub(crate) fn queue(&self) -> &[Object] {
        &self.queue
    }

    /// Whether the handlers have, of every object, what the first `known` writes made of it.
    pub(crate) fn has_all(&self, known: usize, log: &Log) -> bool {
        Object::ALL.into_iter().zip(self.have).all(|(object, have)| log.last_of(object, known) <= have)
    }

    /// The watch delivers the next write: a queued object keeps its place.
    pub(crate) fn receive(&mut self, log: &Log) {
        if let Some(write) = log.0.get(self.received) {
            self.received += 1;
            self.enqueue(write.value.object());
        }
    }

    /// What the handlers take next.
    pub(crate) fn next(&mut self, log: &Log, queue: Queue) -> Option<Object> {
        match queue {
            Queue::InOrder => log.0.get(self.received).map(|write| {
                self.received += 1;
                write.value.object()
            }),
            Queue::DeltaFifo => (!self.queue.is_empty()).then(|| self.queue.remove(0)),
        }
    }

    /// The handlers get an object as it was when the watch last brought it. Whether that changed anything.
    pub(crate) fn take(&mut self, object: Object, log: &Log) -> bool {
        self.queue.retain(|queued| *queued != object);
        let latest = log.last_of(object, self.received);
        let before = std::mem::replace(&mut self.have[object as usize], latest);
        before != latest
    }

    /// A list of this version replaces the watch.
    pub(crate) fn relist(&mut self, version: usize, log: &Log) {
        self.received = version;
        for object in Object::ALL {
            // An object that did not change does nothing.
            if log.last_of(object, version) != self.have[object as usize] {
                self.enqueue(object);
            }
        }
    }

    /// What the handlers have.
    pub(crate) fn view(&self, log: &Log) -> View {
        let mut view = log.at(0);
        for have in self.have {
            if let Some(write) = have.checked_sub(1).and_then(|index| log.0.get(index)) {
                view.apply(write.value);
            }
        }
        view
    }

    fn enqueue(&mut self, object: Object) {
        if !self.queue.contains(&object) {
            self.queue.push(object);
        }
    }
}
