//! The API server: three resources, each with one log of writes in the order of its resource versions.

use std::rc::Rc;

use lastsyn::core::{clock::Monotonic, cluster::TrafficPolicy, listener::Family};

use super::node::NodeId;

/// The most slices that a world can have, markers included.
pub(super) const MOST_SLICES: usize = 20;
/// The most Services.
pub(super) const MOST_SERVICES: usize = 2;

/// A slice, by the number of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId(pub(super) usize);

/// The version of each slice that somebody has: the number of its write, counted from 1; 0 for none.
pub(super) type Versions = [u32; MOST_SLICES];

/// One version of a slice of a Service.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) service: usize,
    pub(super) family: Family,
    /// Port names by number: all endpoints of a slice have them.
    pub(super) ports: Rc<[(u8, u16)]>,
    pub(super) endpoints: Vec<Entry>,
}

/// One endpoint of a slice. What is `None` means what the API says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) pod: u16,
    pub(super) node: NodeId,
    pub(super) ready: Option<bool>,
    pub(super) serving: Option<bool>,
    pub(super) terminating: Option<bool>,
}

/// What a write made of a slice.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Gone,
    Slice(Rc<Body>),
    /// The fence's marker of a family: a number that only this write has.
    Marker(Family, u32),
}

#[derive(Clone, Debug)]
pub(super) struct SliceWrite {
    pub(super) at: Monotonic,
    pub(super) object: ObjectId,
    pub(super) content: Content,
}

/// A Service, as far as it routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) external: TrafficPolicy,
    pub(super) internal: TrafficPolicy,
    pub(super) health_check_node_port: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceWrite {
    pub(super) at: Monotonic,
    pub(super) service: usize,
    pub(super) policy: Policy,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NodeWrite {
    pub(super) at: Monotonic,
    pub(super) node: NodeId,
    pub(super) there: bool,
}

/// All writes.
#[derive(Debug, Default)]
pub(super) struct Api {
    pub(super) slices: Vec<SliceWrite>,
    pub(super) services: Vec<ServiceWrite>,
    pub(super) nodes: Vec<NodeWrite>,
    /// The numbers of each slice's writes.
    of_object: Vec<Vec<u32>>,
    /// Nothing is written any more: the drain has ended.
    pub(super) stopped: bool,
}

impl Api {
    /// Writes a slice, unless the log stands still.
    pub(super) fn write_slice(&mut self, at: Monotonic, object: ObjectId, content: Content) -> bool {
        if self.stopped {
            return false;
        }
        self.slices.push(SliceWrite { at, object, content });
        if self.of_object.len() <= object.0 {
            self.of_object.resize(object.0 + 1, Vec::new());
        }
        self.of_object[object.0].push(count(self.slices.len()));
        true
    }

    /// The last write of a slice among the first `received`; 0 for none.
    pub(super) fn last_of(&self, object: ObjectId, received: u32) -> u32 {
        let written = self.of_object.get(object.0).map_or([].as_slice(), Vec::as_slice);
        written.iter().rev().find(|number| **number <= received).copied().unwrap_or(0)
    }

    /// When a slice was first written after a version of it.
    pub(super) fn written_after(&self, object: ObjectId, version: u32) -> Option<Monotonic> {
        let written = self.of_object.get(object.0)?;
        let next = written.get(written.partition_point(|number| *number <= version))?;
        self.slices.get(*next as usize - 1).map(|write| write.at)
    }

    /// What every slice is after the first `received` writes.
    pub(super) fn versions(&self, received: u32) -> Versions {
        let mut versions = [0; MOST_SLICES];
        for (object, version) in versions.iter_mut().enumerate().take(self.of_object.len()) {
            *version = self.last_of(ObjectId(object), received);
        }
        versions
    }

    /// What a version is; `None` for 0.
    pub(super) fn content(&self, version: u32) -> Option<&Content> {
        version.checked_sub(1).map(|index| &self.slices[index as usize].content)
    }

    /// How many slice writes there are.
    pub(super) fn written(&self) -> u32 {
        count(self.slices.len())
    }

    /// How many slice writes were made by a time.
    pub(super) fn written_by(&self, time: Monotonic) -> u32 {
        let later = self.slices.iter().rev().take_while(|write| write.at > time).count();
        count(self.slices.len() - later)
    }

    /// How many Service writes were made by a time.
    pub(super) fn services_by(&self, time: Monotonic) -> u32 {
        count(self.services.iter().filter(|write| write.at <= time).count())
    }

    /// What each Service is after the first `received` writes.
    pub(super) fn policies(&self, received: u32) -> [Option<Policy>; MOST_SERVICES] {
        let mut policies = [None; MOST_SERVICES];
        for write in self.services.iter().take(received as usize) {
            policies[write.service] = Some(write.policy);
        }
        policies
    }
}

/// Logs are short.
pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
