//! What the watch brought to one process, and what of it the handlers have.

use crate::{
    api::{Log, Object, View},
    service::Service,
    setting::Queue,
};

/// One process' informer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Feed {
    /// The version up to which the watch delivered.
    received: usize,
    /// Of each object, the write that the handlers have, counted from 1.
    have: [usize; 4],
    /// What is delivered, and not with the handlers yet.
    waiting: Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Waiting {
    /// What each list brought, with the write of each object: those of one list in any order, those of a later list
    /// after them. What the watch brings is with the handlers when it is delivered.
    Lists(Vec<Vec<(Object, usize)>>),
    /// One place for each object.
    Places(Vec<Object>),
}

impl Feed {
    /// The first list, with the handlers.
    pub(crate) fn listed(version: usize, log: &Log, queue: Queue) -> Self {
        let waiting = match queue {
            Queue::InOrder => Waiting::Lists(Vec::new()),
            Queue::DeltaFifo => Waiting::Places(Vec::new()),
        };
        Self { received: version, have: Object::ALL.map(|object| log.last_of(object, version)), waiting }
    }

    /// How much of the log was delivered.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// Whether the watch can deliver a write, and leave it waiting.
    pub(crate) fn can_receive(&self, log: &Log) -> bool {
        matches!(self.waiting, Waiting::Places(_)) && self.received < log.len()
    }

    /// Whether the handlers can take the next write.
    pub(crate) fn can_handle(&self, log: &Log) -> bool {
        match &self.waiting {
            Waiting::Lists(lists) => lists.is_empty() && self.received < log.len(),
            Waiting::Places(places) => !places.is_empty(),
        }
    }

    /// The objects of a list that the handlers can take.
    pub(crate) fn listed_next(&self) -> impl Iterator<Item = Object> {
        let list = match &self.waiting {
            Waiting::Lists(lists) => lists.first(),
            Waiting::Places(_) => None,
        };
        list.into_iter().flatten().map(|(object, _)| *object)
    }

    /// Whether the handlers have, of every object, what the first `known` writes made of it.
    pub(crate) fn has_all(&self, known: usize, log: &Log) -> bool {
        Object::ALL.into_iter().zip(self.have).all(|(object, have)| log.last_of(object, known) <= have)
    }

    /// The watch delivers the next write: an object that waits keeps its place.
    pub(crate) fn receive(&mut self, log: &Log) {
        if let (Some(write), Waiting::Places(places)) = (log.0.get(self.received), &mut self.waiting) {
            self.received += 1;
            let object = write.value.object();
            if !places.contains(&object) {
                places.push(object);
            }
        }
    }

    /// The handlers take the next write. Whether that changed anything.
    pub(crate) fn handle(&mut self, log: &Log) -> bool {
        match &mut self.waiting {
            Waiting::Lists(_) => {
                self.received += 1;
                let object = log.0.get(self.received - 1).map(|write| write.value.object());
                object.is_some_and(|object| self.take(object, self.received))
            }
            Waiting::Places(places) => {
                let object = places.remove(0);
                self.take(object, log.last_of(object, self.received))
            }
        }
    }

    /// The handlers take an object of a list. Whether that changed anything.
    pub(crate) fn handle_listed(&mut self, object: Object) -> bool {
        let Waiting::Lists(lists) = &mut self.waiting else { return false };
        let Some(list) = lists.first_mut() else { return false };
        let Some(index) = list.iter().position(|(listed, _)| *listed == object) else { return false };
        let (_, write) = list.remove(index);
        lists.retain(|list| !list.is_empty());
        self.take(object, write)
    }

    /// A list of this version replaces the watch. What did not change does nothing.
    pub(crate) fn relist(&mut self, version: usize, log: &Log) {
        let before = std::mem::replace(&mut self.received, version);
        let changed = Object::ALL.into_iter().filter(|object| log.last_of(*object, version) > before);
        match &mut self.waiting {
            Waiting::Lists(lists) => {
                let list: Vec<_> = changed.map(|object| (object, log.last_of(object, version))).collect();
                lists.extend((!list.is_empty()).then_some(list));
            }
            Waiting::Places(places) => {
                let new: Vec<_> = changed.filter(|object| !places.contains(object)).collect();
                places.extend(new);
            }
        }
    }

    /// What the handlers have.
    pub(crate) fn view(&self, log: &Log, service: &Service) -> View {
        let mut view = service.at(log, 0);
        for have in self.have {
            if let Some(write) = have.checked_sub(1).and_then(|index| log.0.get(index)) {
                view.apply(write.value);
            }
        }
        view
    }

    fn take(&mut self, object: Object, write: usize) -> bool {
        std::mem::replace(&mut self.have[object.index()], write) != write
    }
}
