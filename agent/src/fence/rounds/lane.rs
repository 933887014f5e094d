//! All nodes over one family, and when their values are written.

use std::{collections::BTreeMap, time::Duration};

use super::{Track, WriteId};
use crate::{
    core::{clock::Monotonic, cluster::NodeName},
    fence::generation::Generation,
};

/// How often is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pace {
    /// At least so long from one write's acknowledgement to the next write of that family. What values cannot be mistaken
    /// for each other rests on it ([`super::super::generation::longest_first_list`]).
    pub spacing: Duration,
    /// For how long nodes that are ready wait after the last that became so, so that one write serves them all. In all they
    /// wait no longer than `spacing`.
    pub gather: Duration,
}

/// Nodes that are ready, and wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Gathering {
    /// Since when one is.
    first_at: Monotonic,
    /// When the newest came to them.
    last_at: Monotonic,
    nodes: usize,
}

/// A write that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which.
    pub id: WriteId,
    /// The values that change.
    pub values: BTreeMap<NodeName, Generation>,
}

/// All nodes over one family.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    pace: Pace,
    tracks: BTreeMap<NodeName, Track>,
    /// What is in the API is known, and no write's outcome is open.
    known: bool,
    trouble: Option<String>,
    begun: u64,
    in_flight: Option<WriteId>,
    acknowledged: Option<WriteId>,
    advanced_at: Option<Monotonic>,
    /// Values that the API has of nodes that are not listed. A node that comes back goes on with its own.
    others: BTreeMap<NodeName, Generation>,
    /// A write's outcome was not known, or it was refused.
    lost: bool,
    /// Those whose values are to advance by the next write.
    gathering: Option<Gathering>,
}

impl Lane {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            tracks: BTreeMap::new(),
            known: false,
            trouble: None,
            begun: 0,
            in_flight: None,
            acknowledged: None,
            advanced_at: None,
            others: BTreeMap::new(),
            lost: false,
            gathering: None,
        }
    }

    /// The last write that has begun.
    pub(super) fn begun(&self) -> WriteId {
        WriteId(self.begun)
    }

    /// These nodes, and no others.
    pub(super) fn keep<'a>(&mut self, names: impl Iterator<Item = &'a NodeName>) {
        let mut before = std::mem::take(&mut self.tracks);
        for name in names {
            let mut track = before.remove(name).unwrap_or_default();
            if let Some(value) = self.others.remove(name) {
                track.load(Some(value));
            }
            self.tracks.insert(name.clone(), track);
        }
        self.others.extend(before.into_iter().filter_map(|(name, track)| Some((name, track.written()?))));
    }

    pub(super) fn loaded(&mut self, values: &BTreeMap<NodeName, Generation>, now: Monotonic) {
        let differs = |(name, track): (&NodeName, &Track)| {
            track.written().is_some_and(|written| values.get(name) != Some(&written))
        };
        if std::mem::take(&mut self.lost) || self.tracks.iter().any(differs) {
            // Somebody else may have written, at a pace of his own: ours begins anew.
            self.hold(now);
        }
        for (name, track) in &mut self.tracks {
            track.load(values.get(name).copied());
        }
        let others = values.iter().filter(|(name, _)| !self.tracks.contains_key(*name));
        self.others = others.map(|(name, value)| (name.clone(), *value)).collect();
        self.known = true;
        self.trouble = None;
        self.in_flight = None;
    }

    /// Somebody else may have written by `now`.
    pub(super) fn hold(&mut self, now: Monotonic) {
        self.advanced_at = self.advanced_at.max(Some(now));
    }

    /// Nobody asks any more: all connections are closed, and others may write.
    pub(super) fn rest(&mut self) {
        self.known = false;
        self.in_flight = None;
        self.gathering = None;
        for track in self.tracks.values_mut() {
            track.rest();
        }
    }

    pub(super) fn unavailable(&mut self, why: String) {
        self.known = false;
        self.trouble = Some(why);
    }

    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    pub(super) fn wants_load(&self) -> bool {
        !self.known && self.in_flight.is_none()
    }

    pub(super) fn track(&self, name: &NodeName) -> Option<&Track> {
        self.tracks.get(name)
    }

    pub(super) fn tracks(&self) -> impl Iterator<Item = (&NodeName, &Track)> {
        self.tracks.iter()
    }

    pub(super) fn with<T>(
        &mut self,
        name: &NodeName,
        take: impl FnOnce(&mut Track, Option<WriteId>) -> T,
    ) -> Option<T> {
        let acknowledged = self.acknowledged;
        self.tracks.get_mut(name).map(|track| take(track, acknowledged))
    }

    /// When a write is due for calls the newest of which came after the write `newest` had begun.
    pub(super) fn due(&self, newest: Option<WriteId>, now: Monotonic) -> Option<Monotonic> {
        if !self.known || self.in_flight.is_some() {
            return None;
        }
        // A node that is new has nothing that could be mistaken for anything.
        if self.tracks.values().any(|track| track.written().is_none()) {
            return Some(now);
        }
        let newest = newest?;
        let mut wanting = self.wanting(newest).peekable();
        wanting.peek()?;
        let (mut ready, mut others) = (0, false);
        for track in wanting {
            ready += usize::from(track.is_ready());
            others |= !track.is_ready() && track.may_be_ready();
        }
        if ready == 0 {
            return None;
        }
        let allowed = self.advanced_at.map_or(now, |at| at + self.pace.spacing);
        let gathered = if others { self.gathered(ready, now).until(self.pace) } else { now };
        Some(allowed.max(gathered))
    }

    /// The gathering as of now, with so many nodes.
    fn gathered(&self, nodes: usize, now: Monotonic) -> Gathering {
        match self.gathering {
            None => Gathering { first_at: now, last_at: now, nodes },
            Some(before) if nodes > before.nodes => Gathering { last_at: now, nodes, ..before },
            Some(before) => Gathering { nodes, ..before },
        }
    }

    /// Begins a write, if one is due.
    pub(super) fn begin(&mut self, newest: Option<WriteId>, now: Monotonic) -> Option<Write> {
        let due = self.due(newest, now);
        if due.is_none_or(|due| due > now) {
            // The gathering starts with the first that is ready.
            if let Some(newest) = newest.filter(|_| due.is_some()) {
                let ready = self.wanting(newest).filter(|track| track.is_ready()).count();
                self.gathering = Some(self.gathered(ready, now));
            }
            return None;
        }
        self.begun += 1;
        let id = WriteId(self.begun);
        let mut values = BTreeMap::new();
        let allowed = self.advanced_at.is_none_or(|at| now >= at + self.pace.spacing);
        let mut advanced = false;
        for (name, track) in &mut self.tracks {
            if track.written().is_none() {
                track.begin();
            } else if allowed && track.is_ready() && newest.is_some_and(|newest| !track.proves(newest)) {
                track.advance(id, now);
                advanced = true;
            } else {
                continue;
            }
            values.extend(track.written().map(|value| (name.clone(), value)));
        }
        if advanced {
            self.advanced_at = Some(now);
            self.gathering = None;
        }
        self.in_flight = Some(id);
        Some(Write { id, values })
    }

    pub(super) fn written(&mut self, id: WriteId, now: Monotonic) {
        if self.in_flight == Some(id) {
            self.in_flight = None;
            self.acknowledged = Some(id);
            if self.advanced_at.is_some() {
                self.advanced_at = self.advanced_at.max(Some(now));
            }
        }
    }

    pub(super) fn lost(&mut self, id: WriteId) {
        if self.in_flight == Some(id) {
            self.in_flight = None;
            self.known = false;
            self.lost = true;
        }
    }

    fn wanting(&self, newest: WriteId) -> impl Iterator<Item = &Track> {
        self.tracks.values().filter(move |track| !track.proves(newest))
    }
}

// === impl Gathering ===

impl Gathering {
    fn until(self, pace: Pace) -> Monotonic {
        (self.last_at + pace.gather).min(self.first_at + pace.spacing)
    }
}
