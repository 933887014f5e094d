//! The fence's decision: when a marker is to be written, and what a node has proven by showing it. Pure: no clock and no I/O.
//! Time comes in, and so does what became of every write.
//!
//! Every node has, for each family, a value ([`Generation`]) in the fence's slices. A write advances the values of all nodes
//! that are ready, that is, that have shown the value they have. A call (one agent's request) is answered for a node when it
//! has shown two values, both of writes that began after the call, over one connection that was open before the first of them
//! (C4). So calls share writes: whoever asked before a write began has his part in it, and who asks later waits for the next.
//!
//! | what | where |
//! | --- | --- |
//! | one node over one family | [`track`] |
//! | all nodes over one family, and when to write | [`lane`] |
//! | calls, and what each is told | here |

mod lane;
#[cfg(test)]
mod tests;
mod track;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use self::{lane::Lane, track::Track};
pub use self::{
    lane::{Pace, Write},
    track::{Reach, WriteId},
};
use super::generation::Generation;
use crate::core::{
    clock::Monotonic,
    cluster::{ConnectionId, Node, NodeName},
    confirm::{OperatingSystem, StatusGiven},
    event::ByFamily,
    listener::Family,
};

/// One agent's request. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// How a node stands towards a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its rules have everything from before the call, and the process that showed it still lived so long after the call.
    Confirmed {
        /// How long.
        stood_for: Duration,
    },
    /// Not yet; in words.
    Pending(Cow<'static, str>),
    /// It will not show anything; in words.
    Unobservable(Cow<'static, str>),
}

/// What of a family is still to be seen, of every node: all that any call lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants {
    /// Two writes that began after this one.
    after: WriteId,
    /// An answer to a request that was sent at this time or later.
    stand: Monotonic,
}

/// All nodes, both families, and the calls under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rounds {
    lanes: ByFamily<Lane>,
    calls: BTreeMap<CallId, Call>,
    nodes: BTreeMap<NodeName, OperatingSystem>,
    listed_as_of: Option<Monotonic>,
    given: StatusGiven,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    at: Monotonic,
    stand: Duration,
    /// The families asked for, and the last write of each that had begun by then.
    after: BTreeMap<Family, WriteId>,
}

impl Rounds {
    /// Nobody asks, and nothing is known.
    pub fn new(pace: Pace) -> Self {
        let lanes = ByFamily { v4: Lane::new(pace), v6: Lane::new(pace) };
        Self {
            lanes,
            calls: BTreeMap::new(),
            nodes: BTreeMap::new(),
            listed_as_of: None,
            given: StatusGiven::default(),
        }
    }

    /// An agent asks at `now`: what it knows of is to be in the nodes' rules, by processes that still live `stand` later.
    pub fn ask(&mut self, call: CallId, families: &[Family], stand: Duration, now: Monotonic) {
        let after = families.iter().map(|family| (*family, self.lanes.get(*family).begun())).collect();
        self.calls.insert(call, Call { at: now, stand, after });
    }

    /// It has its answer, or has gone.
    pub fn leave(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    /// Nobody is served any more: all connections are closed, and another writer may take over.
    pub fn rest(&mut self) {
        self.calls.clear();
        for family in Family::ALL {
            self.lanes.get_mut(family).rest();
        }
    }

    /// Another writer may have written until `now`: the next write keeps its distance from that.
    pub fn hold(&mut self, now: Monotonic) {
        for family in Family::ALL {
            self.lanes.get_mut(family).hold(now);
        }
    }

    /// Whether anybody asks.
    pub fn is_asked(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The nodes, by a consistent read that began at `as_of`. Who is gone is forgotten.
    pub fn nodes(&mut self, nodes: &[Node], as_of: Monotonic) {
        self.nodes = nodes.iter().map(|node| (node.name.clone(), node.system)).collect();
        self.listed_as_of = self.listed_as_of.max(Some(as_of));
        for family in Family::ALL {
            self.lanes.get_mut(family).keep(self.nodes.keys());
        }
    }

    /// The nodes, and as of when.
    pub fn listed(&self) -> Option<(impl Iterator<Item = Node> + '_, Monotonic)> {
        let nodes = self.nodes.iter().map(|(name, system)| Node { name: name.clone(), system: *system });
        Some((nodes, self.listed_as_of?))
    }

    /// Whether a list of the nodes is to be read: for a call that is newer than the last, and once more when what the
    /// call asks for has stood long enough, as a node may have joined in between (C11).
    pub fn list_wanted(&self, now: Monotonic) -> bool {
        let before = |time: Monotonic| self.listed_as_of.is_none_or(|as_of| as_of < time);
        self.calls.values().any(|call| {
            let stands = call.at + call.stand;
            before(call.at) || (now >= stands && before(stands))
        })
    }

    /// When [`list_wanted`](Self::list_wanted) changes next.
    pub fn list_due(&self, now: Monotonic) -> Option<Monotonic> {
        self.calls.values().map(|call| call.at + call.stand).filter(|at| *at > now).min()
    }

    /// What the API has of a family: after the start, and whenever a write did not go as it should.
    pub fn loaded(&mut self, family: Family, values: &BTreeMap<NodeName, Generation>, now: Monotonic) {
        self.lanes.get_mut(family).loaded(values, now);
    }

    /// A family cannot be fenced now; in words.
    pub fn unavailable(&mut self, family: Family, why: String) {
        self.lanes.get_mut(family).unavailable(why);
    }

    /// Why a family cannot be fenced.
    pub fn trouble(&self, family: Family) -> Option<&str> {
        self.lanes.get(family).trouble()
    }

    /// A connection to a node's kube-proxy was opened.
    pub fn opened(&mut self, node: &NodeName, family: Family, connection: ConnectionId) {
        self.with(node, family, |track, _| track.opened(connection));
    }

    /// One ended.
    pub fn closed(&mut self, node: &NodeName, family: Family, connection: ConnectionId) {
        self.with(node, family, |track, _| track.closed(connection));
    }

    /// A node does not answer, or what answers is of no use.
    pub fn reach(&mut self, node: &NodeName, family: Family, reach: Reach) {
        if let (Reach::Answers, Some(system)) = (&reach, self.nodes.get(node)) {
            self.given.add(*system);
        }
        self.with(node, family, |track, _| track.reach = reach);
    }

    /// A node's kube-proxy answered so many endpoints to a request that was sent at `sent_at`. Returns how long the marker
    /// took that showed by this, if one did.
    pub fn answered(
        &mut self,
        node: &NodeName,
        family: Family,
        connection: ConnectionId,
        sent_at: Monotonic,
        endpoints: u64,
        now: Monotonic,
    ) -> Option<Duration> {
        if let Some(system) = self.nodes.get(node) {
            self.given.add(*system);
        }
        let value = Generation::of(endpoints);
        let showed = |track: &mut Track, acknowledged| track.answer(connection, sent_at, now, value, acknowledged);
        self.with(node, family, showed).flatten()
    }

    /// When a write is due, if nothing comes before; `None` while none is wanted or possible.
    pub fn write_due(&self, family: Family, now: Monotonic) -> Option<Monotonic> {
        self.lanes.get(family).due(self.newest(family), now)
    }

    /// Begins a write, if one is due: what is to be in the API afterwards, where it changes.
    pub fn begin_write(&mut self, family: Family, now: Monotonic) -> Option<Write> {
        let newest = self.newest(family);
        self.lanes.get_mut(family).begin(newest, now)
    }

    /// The API server has taken a write.
    pub fn written(&mut self, family: Family, write: WriteId, now: Monotonic) {
        self.lanes.get_mut(family).written(write, now);
    }

    /// What became of a write is not known, or it was refused: what the API has is to be read again.
    pub fn write_lost(&mut self, family: Family, write: WriteId) {
        self.lanes.get_mut(family).lost(write);
    }

    /// Whether what the API has of a family is to be read.
    pub fn load_wanted(&self, family: Family) -> bool {
        self.lanes.get(family).wants_load()
    }

    /// What is still to be seen of a family's nodes; `None`: nobody asks.
    pub fn wants(&self, family: Family) -> Option<Wants> {
        let of_family =
            || self.calls.values().filter_map(|call| Some((call.after.get(&family)?, call.at + call.stand)));
        let after = of_family().map(|(after, _)| *after).max()?;
        let stand = of_family().map(|(_, stand)| stand).max()?;
        Some(Wants { after, stand })
    }

    /// Whether a node's next answer is of use. One that shows what is written for it has nothing new to say before the next
    /// write, and one that has shown both markers not before its process has stood long enough.
    pub fn answer_wanted(&self, node: &NodeName, family: Family, wants: Wants, now: Monotonic) -> bool {
        let Some(track) = self.lanes.get(family).track(node) else { return false };
        if track.proves(wants.after) {
            now >= wants.stand && track.stood_at().is_none_or(|stood_at| stood_at < wants.stand)
        } else {
            !track.is_ready()
        }
    }

    /// How every node stands towards a call, in each family that it asks for.
    pub fn states(&self, call: CallId) -> impl Iterator<Item = (&NodeName, Family, State)> {
        let call = self.calls.get(&call);
        call.into_iter().flat_map(move |call| {
            call.after.iter().flat_map(move |(family, after)| {
                let lane = self.lanes.get(*family);
                lane.tracks().map(move |(name, track)| (name, *family, self.state(call, name, track, *after, lane)))
            })
        })
    }

    /// Whether the list of nodes is new enough for a call that has everything else.
    pub fn list_stands(&self, call: CallId) -> bool {
        let call = self.calls.get(&call);
        call.is_some_and(|call| self.listed_as_of.is_some_and(|as_of| as_of >= call.at + call.stand))
    }

    /// When a call came.
    pub fn asked_at(&self, call: CallId) -> Option<Monotonic> {
        self.calls.get(&call).map(|call| call.at)
    }

    /// When each node last showed a marker and how long it took, what is written for it, and how far it is within reach.
    pub fn looks(&self, family: Family) -> impl Iterator<Item = Looked<'_>> {
        self.lanes.get(family).tracks().map(|(name, track)| Looked {
            name,
            written: track.written(),
            last: track.last,
            reach: &track.reach,
            shows: track.is_ready(),
        })
    }

    fn state(&self, call: &Call, name: &NodeName, track: &Track, after: WriteId, lane: &Lane) -> State {
        match (call.state(track, after), lane.trouble()) {
            (State::Pending(_), Some(why)) => State::Pending(format!("the fence cannot write markers: {why}").into()),
            (State::Pending(why), None) => match &track.reach {
                Reach::Silent(silent) => {
                    let system = self.nodes.get(name).copied().unwrap_or(OperatingSystem::Unknown);
                    // C12: where others answer, it is a fault of this one.
                    if self.given.has(system) {
                        State::Pending(silent.clone().into())
                    } else {
                        State::Unobservable(silent.clone().into())
                    }
                }
                Reach::Stranger(stranger) => State::Unobservable(stranger.clone().into()),
                Reach::Unknown | Reach::Answers => State::Pending(why),
            },
            (state, _) => state,
        }
    }

    /// The last write that had begun when the newest call came.
    fn newest(&self, family: Family) -> Option<WriteId> {
        self.calls.values().filter_map(|call| call.after.get(&family)).max().copied()
    }

    fn with<T>(
        &mut self,
        node: &NodeName,
        family: Family,
        take: impl FnOnce(&mut Track, Option<WriteId>) -> T,
    ) -> Option<T> {
        self.lanes.get_mut(family).with(node, take)
    }

    /// The names of all nodes.
    pub fn names(&self) -> BTreeSet<NodeName> {
        self.nodes.keys().cloned().collect()
    }
}

/// One node over one family, for whoever looks.
#[derive(Clone, Copy, Debug)]
pub struct Looked<'a> {
    /// Its name.
    pub name: &'a NodeName,
    /// What is written for it.
    pub written: Option<Generation>,
    /// When it last showed a marker, and how long that took from the write.
    pub last: Option<(Monotonic, Duration)>,
    /// Whether it answers.
    pub reach: &'a Reach,
    /// Whether its rules show what is written.
    pub shows: bool,
}

impl Call {
    fn state(&self, track: &Track, after: WriteId) -> State {
        if !track.proves(after) {
            return State::Pending(track.awaits(after).into());
        }
        match track.stood_at() {
            Some(stood_at) if stood_at >= self.at + self.stand => {
                State::Confirmed { stood_for: stood_at.since(self.at) }
            }
            _ => State::Pending("its rules have shown both markers; its kube-proxy is to live a little longer".into()),
        }
    }
}
