//! The agent's watch of the slices, and what the core's routing makes of it.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use lastsyn::core::{listener::Family, routing::Routing};

use crate::{
    agent::at,
    api::{Content, Log, Value},
    service,
    setting::Setting,
    witness,
};

/// What the agent knows of the slices.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// How much of the log it has.
    seen: usize,
    /// Where a list took the place of the watch.
    lists: Vec<usize>,
    /// How much of the log it had at the last relevant change.
    relevant: usize,
    /// Follows from all of the above and the log: no part of what makes two states one.
    routing: Arc<Routing>,
}

impl Watch {
    pub(crate) fn new(setting: &Setting) -> Self {
        Self { seen: 0, lists: Vec::new(), relevant: 0, routing: Arc::new(setting.service.routing()) }
    }

    /// Whether it has something to deliver: markers are not of the pod's Service, and not watched.
    pub(crate) fn has_more(&self, log: &Log) -> bool {
        log.0.iter().skip(self.seen).any(|write| write.value.is_of_the_service())
    }

    /// The versions of which a list can take its place.
    pub(crate) fn lists(&self, log: &Log) -> std::ops::RangeInclusive<usize> {
        self.seen + 1..=log.len()
    }

    /// It delivers the next write. Whether that is a relevant change.
    pub(crate) fn deliver(&mut self, log: &Log, setting: &Setting, now: u8) -> bool {
        while let Some(write) = log.0.get(self.seen) {
            self.seen += 1;
            let Value::Slice(slice, content) = write.value else { continue };
            let routing = Arc::make_mut(&mut self.routing);
            let changes = if content == Content::EMPTY {
                routing.slice_removed(&service::name(slice), at(now))
            } else {
                routing.slice_written(&setting.service.slice(slice, content, self.seen), at(now))
            };
            let by_the_core = changes.relevant.contains(&Family::V4);
            let withdrawn = self.is_withdrawn();
            let history = witness::History { service: &setting.service, log, from: self.relevant, to: self.seen };
            return self.is_relevant(setting.relevance.asks(by_the_core, withdrawn, &history));
        }
        false
    }

    /// A list takes its place.
    pub(crate) fn list(&mut self, version: usize, log: &Log, setting: &Setting, now: u8) -> bool {
        self.seen = version;
        self.lists.push(version);
        let slices = setting.service.slices(log, version);
        let changes = Arc::make_mut(&mut self.routing).slices_listed(&slices, at(now));
        self.is_relevant(changes.relevant.contains(&Family::V4))
    }

    /// Whether it shows the pod withdrawn.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.routing.known() && self.routing.routes().all(|route| !route.state.is_routed())
    }

    fn is_relevant(&mut self, relevant: bool) -> bool {
        if relevant {
            self.relevant = self.seen;
        }
        relevant
    }
}

impl PartialEq for Watch {
    fn eq(&self, other: &Self) -> bool {
        (self.seen, &self.lists, self.relevant) == (other.seen, &other.lists, other.relevant)
    }
}

impl Eq for Watch {}

impl Hash for Watch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.seen, &self.lists, self.relevant).hash(state);
    }
}
