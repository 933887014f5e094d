//! By how much the watch is behind: what a consistent read shows (C9) and the watch has not told yet, until it does. Both times are of the
//! agent's own clock. Pure.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use crate::core::{
    clock::Monotonic,
    cluster::{ClusterEvent, ReadOutcome, ResourceVersion, ServiceName, SliceName, Snapshot},
};

/// How many versions of one object are remembered: a read may show one that the watch has gone past.
const VERSIONS: usize = 8;

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Object {
    Slice(SliceName),
    Service(ServiceName),
}

/// A version; `None`: it is gone.
type Version = Option<ResourceVersion>;

/// What the watch has told, and what it owes.
#[derive(Debug, Default)]
pub(super) struct WatchLag {
    told: BTreeMap<Object, VecDeque<Version>>,
    owed: Option<(BTreeSet<(Object, Version)>, Monotonic)>,
}

impl WatchLag {
    /// Takes in what the cluster said. By how much the watch was behind, once that is known of a consistent read.
    pub(super) fn said(&mut self, event: &ClusterEvent, now: Monotonic) -> Option<Duration> {
        match event {
            ClusterEvent::SlicesListed(all) => {
                let all = all.iter().map(|slice| (Object::Slice(slice.name.clone()), slice.version.clone()));
                self.listed(all.collect(), |object| matches!(object, Object::Slice(_)));
                None
            }
            ClusterEvent::ServicesListed(all) => {
                let all = all.iter().map(|service| (Object::Service(service.name.clone()), service.version.clone()));
                self.listed(all.collect(), |object| matches!(object, Object::Service(_)));
                None
            }
            ClusterEvent::SliceWritten(slice) => {
                self.told(Object::Slice(slice.name.clone()), Some(slice.version.clone()), now)
            }
            ClusterEvent::SliceRemoved(name) => self.told(Object::Slice(name.clone()), None, now),
            ClusterEvent::ServiceWritten(service) => {
                self.told(Object::Service(service.name.clone()), Some(service.version.clone()), now)
            }
            ClusterEvent::ServiceRemoved(name) => self.told(Object::Service(name.clone()), None, now),
            ClusterEvent::ConsistentRead(_, ReadOutcome::Shows(snapshot)) => self.read(snapshot, now),
            _ => None,
        }
    }

    /// A list is all there is of its kind. What it hides of the time before is not known.
    fn listed(&mut self, all: Vec<(Object, ResourceVersion)>, is_of_it: impl Fn(&Object) -> bool) {
        self.owed = None;
        self.told.retain(|object, _| !is_of_it(object));
        self.told.extend(all.into_iter().map(|(object, version)| (object, VecDeque::from([Some(version)]))));
    }

    fn told(&mut self, object: Object, version: Version, now: Monotonic) -> Option<Duration> {
        let versions = self.told.entry(object.clone()).or_default();
        if versions.len() == VERSIONS {
            versions.pop_front();
        }
        versions.push_back(version.clone());
        let (owed, since) = self.owed.as_mut()?;
        owed.remove(&(object, version));
        let lag = owed.is_empty().then(|| now.since(*since))?;
        self.owed = None;
        Some(lag)
    }

    fn read(&mut self, snapshot: &Snapshot, now: Monotonic) -> Option<Duration> {
        let slices = snapshot.slices.iter().map(|(name, version)| (Object::Slice(name.clone()), version.clone()));
        let services = snapshot.services.iter().map(|(name, version)| (Object::Service(name.clone()), version.clone()));
        let shown: BTreeMap<Object, ResourceVersion> = slices.chain(services).collect();
        let has = |object: &Object, version: &Version| {
            self.told.get(object).is_some_and(|versions| versions.contains(version))
        };
        let newer = shown.iter().map(|(object, version)| (object.clone(), Some(version.clone())));
        let stands = |versions: &VecDeque<Version>| versions.back().is_some_and(Option::is_some);
        let gone = self.told.iter().filter(|(object, versions)| stands(versions) && !shown.contains_key(object));
        let gone = gone.map(|(object, _)| (object.clone(), None));
        let owed: BTreeSet<_> = newer.chain(gone).filter(|(object, version)| !has(object, version)).collect();
        self.owed = (!owed.is_empty()).then_some((owed, now));
        self.owed.is_none().then_some(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        cluster::{ReadId, ServiceProxy, Slice},
        listener::Family,
    };

    fn at(millis: u64) -> Monotonic {
        Monotonic::from_nanos(millis * 1_000_000)
    }

    fn slice(name: &str, version: &str) -> Slice {
        Slice {
            name: SliceName(name.to_owned()),
            version: ResourceVersion(version.to_owned()),
            service: ServiceName("web".to_owned()),
            family: Family::V4,
            proxy: ServiceProxy::KubeProxy,
            ports: Vec::new(),
            endpoints: Vec::new(),
        }
    }

    fn read(slices: &[(&str, &str)]) -> ClusterEvent {
        let slices = slices
            .iter()
            .map(|(name, version)| (SliceName((*name).to_owned()), ResourceVersion((*version).to_owned())));
        let snapshot = Snapshot { slices: slices.collect(), ..Snapshot::default() };
        ClusterEvent::ConsistentRead(ReadId(1), ReadOutcome::Shows(snapshot))
    }

    #[test]
    fn a_watch_that_has_told_everything_is_not_behind() {
        let mut lag = WatchLag::default();
        lag.said(&ClusterEvent::SlicesListed(vec![slice("a", "1")]), at(0));
        assert_eq!(lag.said(&read(&[("a", "1")]), at(5)), Some(Duration::ZERO));
        // Nor one that has gone past what the read shows.
        assert_eq!(lag.said(&ClusterEvent::SliceWritten(slice("a", "2")), at(6)), None);
        assert_eq!(lag.said(&read(&[("a", "1")]), at(7)), Some(Duration::ZERO));
    }

    #[test]
    fn it_is_behind_until_it_has_told_the_last_of_what_the_read_showed() {
        let mut lag = WatchLag::default();
        lag.said(&ClusterEvent::SlicesListed(vec![slice("a", "1"), slice("b", "1")]), at(0));
        assert_eq!(lag.said(&read(&[("a", "9")]), at(10)), None);
        assert_eq!(lag.said(&ClusterEvent::SliceWritten(slice("a", "8")), at(11)), None);
        assert_eq!(lag.said(&ClusterEvent::SliceWritten(slice("a", "9")), at(15)), None, "`b` has gone too");
        let removed = ClusterEvent::SliceRemoved(SliceName("b".to_owned()));
        assert_eq!(lag.said(&removed, at(40)), Some(Duration::from_millis(30)));
        assert_eq!(lag.said(&removed, at(50)), None, "told once");
        // After another list nobody knows.
        assert_eq!(lag.said(&read(&[("a", "10")]), at(60)), None);
        lag.said(&ClusterEvent::SlicesListed(vec![slice("a", "10")]), at(61));
        assert_eq!(lag.said(&ClusterEvent::SliceWritten(slice("a", "11")), at(62)), None);
    }
}
