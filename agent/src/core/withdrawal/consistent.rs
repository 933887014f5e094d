//! C9: before any end but the bound, a consistent read shows that nothing of the routing was missed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::super::{
    clock::Monotonic,
    cluster::{NodeName, ReadId, ReadOutcome, ResourceVersion, ServiceName, SliceName, Snapshot},
    routing::Routing,
};

/// How long after a read that failed the next one is made. What asks the API server sees to its own pace.
const AGAIN: Duration = Duration::from_millis(250);

/// Where the consistent read stands.
#[derive(Clone, Debug, Default)]
pub(super) struct ConsistentRead {
    asked: Option<Asked>,
    done: Option<Done>,
    not_before: Option<Monotonic>,
    /// The API server does not let the agent read, or there is none: in words, and when that became known.
    forbidden: Option<(String, Monotonic)>,
}

/// A read under way, or one whose news the watch has not delivered yet.
#[derive(Clone, Debug)]
struct Asked {
    id: ReadId,
    /// It began at this time or later.
    at: Monotonic,
    /// What was believed when it was asked for, and what the watch delivered since: a read may show any of it.
    known: BTreeSet<Fact>,
    /// The nodes that the watch has told of since: what a read shows of them may be older.
    nodes_told: BTreeSet<NodeName>,
    /// What it shows that the watch has not delivered, and until when that is awaited.
    awaited: Option<(BTreeSet<Fact>, Monotonic)>,
}

/// A read that showed what was believed.
#[derive(Clone, Copy, Debug)]
struct Done {
    began: Monotonic,
    answered: Monotonic,
}

/// What can be so of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// A slice has this version, or is gone.
    Slice(SliceName, Option<ResourceVersion>),
    /// A Service has this version, or is gone.
    Service(ServiceName, Option<ResourceVersion>),
}

impl ConsistentRead {
    /// When the next read is to begin, if one counts that began at `since` or later and not longer ago than `fresh`: at
    /// once, or when the one that is under way or made counts no longer. `None`: there is none to be had.
    pub(super) fn due(&self, since: Monotonic, fresh: Duration) -> Option<Monotonic> {
        if self.forbidden.is_some() {
            return None;
        }
        let began = self.asked.as_ref().map(|asked| asked.at).max(self.done.map(|done| done.began));
        let counts_until = began.filter(|began| *began >= since).map(|began| began + fresh + Duration::from_nanos(1));
        Some(counts_until.max(self.not_before).unwrap_or_default())
    }

    /// Whether one is asked for, or is to be asked for again.
    pub(super) fn is_under_way(&self) -> bool {
        self.asked.is_some() || self.not_before.is_some()
    }

    /// Begins one.
    pub(super) fn ask(&mut self, id: ReadId, routing: &Routing, now: Monotonic) {
        self.not_before = None;
        let nodes_told = BTreeSet::new();
        self.asked = Some(Asked { id, at: now, known: believed(routing), nodes_told, awaited: None });
    }

    /// The watch told of these nodes.
    pub(super) fn nodes_told<'a>(&mut self, names: impl IntoIterator<Item = &'a NodeName>) {
        if let Some(asked) = &mut self.asked {
            asked.nodes_told.extend(names.into_iter().cloned());
        }
    }

    /// Of which nodes an answer to this read tells nothing new; `None`: of none, as it is an older read.
    pub(super) fn nodes_told_since(&self, id: ReadId) -> Option<&BTreeSet<NodeName>> {
        self.asked.as_ref().filter(|asked| asked.id == id).map(|asked| &asked.nodes_told)
    }

    /// The watch has been listed anew, which is more than it was asked to deliver: what a read awaited may be hidden in
    /// it. The read is made again.
    pub(super) fn start_anew(&mut self) {
        self.asked = None;
    }

    /// The watch delivered something.
    pub(super) fn delivered(&mut self, fact: Fact, now: Monotonic) {
        let Some(asked) = &mut self.asked else { return };
        if let Some((awaited, _)) = &mut asked.awaited {
            awaited.remove(&fact);
            if awaited.is_empty() {
                self.done = Some(Done { began: asked.at, answered: now });
                self.asked = None;
            }
            return;
        }
        asked.known.insert(fact);
    }

    /// An answer to a read. One to an older read says nothing.
    pub(super) fn answered(
        &mut self,
        id: ReadId,
        outcome: &ReadOutcome,
        routing: &Routing,
        patience: Duration,
        now: Monotonic,
    ) {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.id == id && asked.awaited.is_none()) else { return };
        match outcome {
            ReadOutcome::Failed(_) => {
                self.asked = None;
                self.not_before = Some(now + AGAIN);
            }
            ReadOutcome::Forbidden(why) => {
                self.asked = None;
                self.forbidden = Some((why.clone(), now));
            }
            ReadOutcome::Shows(snapshot) => {
                asked.known.extend(believed(routing));
                let awaited: BTreeSet<Fact> =
                    shown(snapshot, routing).filter(|fact| !asked.known.contains(fact)).collect();
                if awaited.is_empty() {
                    self.done = Some(Done { began: asked.at, answered: now });
                    self.asked = None;
                } else {
                    asked.awaited = Some((awaited, now + patience));
                }
            }
        }
    }

    /// Whether what a read shows has been awaited in vain. The read is then given up.
    pub(super) fn expire(&mut self, now: Monotonic) -> bool {
        let in_vain = self.expires().is_some_and(|until| now >= until);
        if in_vain {
            self.asked = None;
            self.done = None;
        }
        in_vain
    }

    /// When [`expire`](Self::expire) is due.
    pub(super) fn expires(&self) -> Option<Monotonic> {
        self.asked.as_ref()?.awaited.as_ref().map(|(_, until)| *until)
    }

    /// When a read that began after evidence of this time was answered.
    pub(super) fn covers(&self, evidence_at: Monotonic) -> Option<Monotonic> {
        self.done.filter(|done| done.began >= evidence_at).map(|done| done.answered)
    }

    /// From when on an end can do without one: everything else is read again after that, as after a read.
    pub(super) fn done_without_from(&self) -> Option<Monotonic> {
        self.forbidden.as_ref().map(|(_, at)| *at)
    }

    /// Why there is none to be had.
    pub(super) fn forbidden(&self) -> Option<&str> {
        self.forbidden.as_ref().map(|(why, _)| why.as_str())
    }
}

/// Everything that is believed.
fn believed(routing: &Routing) -> BTreeSet<Fact> {
    let slices = routing.slice_versions().map(|(name, version)| Fact::Slice(name.clone(), Some(version.clone())));
    let services = routing.service_versions().map(|(name, version)| Fact::Service(name.clone(), Some(version.clone())));
    slices.chain(services).collect()
}

/// Everything that a read shows: the versions of what is there, and that what is believed and not there is gone.
fn shown<'a>(snapshot: &'a Snapshot, routing: &'a Routing) -> impl Iterator<Item = Fact> + 'a {
    let versions = |name: &SliceName, version: &ResourceVersion| Fact::Slice(name.clone(), Some(version.clone()));
    let slices = snapshot.slices.iter().map(move |(name, version)| versions(name, version));
    let services = snapshot.services.iter().map(|(name, version)| Fact::Service(name.clone(), Some(version.clone())));
    let gone_slices = gone(routing.slice_versions().map(|(name, _)| name), &snapshot.slices);
    let gone_services = gone(routing.service_versions().map(|(name, _)| name), &snapshot.services);
    slices
        .chain(services)
        .chain(gone_slices.map(|name| Fact::Slice(name, None)))
        .chain(gone_services.map(|name| Fact::Service(name, None)))
}

fn gone<'a, N: Ord + Clone + 'a>(
    believed: impl Iterator<Item = &'a N> + 'a,
    there: &'a BTreeMap<N, ResourceVersion>,
) -> impl Iterator<Item = N> + 'a {
    believed.filter(|name| !there.contains_key(*name)).cloned()
}
