//! Confirmation: whether each node's kube-proxy is known to have a withdrawal in its rules, per family (C1-C8, C10-C14).
//!
//! Evidence comes from two places: the node's own health server, asked over one connection that is kept open
//! ([`HealthReport`]), and the fence, which writes markers and watches each node for their effect ([`FenceProgress`]).
//! Every rule here was found by looking for a way round the simpler one; `docs/protocol.md` and `tests/model` have the
//! searches.
//!
//! | rule | place |
//! | --- | --- |
//! | C1 the connection is the process, C2 what counts, C3 edges | [`connection`] |
//! | C4 `fence`, C11 when causal evidence counts | [`fence`] |
//! | C5 `syncs` | [`syncs`] |
//! | C6 `settled` | [`settled`] |
//! | C7 `waited` | [`waited`] |
//! | C10 what voids | [`change`] |
//! | C12 pending or unobservable | [`reach`] |
//! | C13 what replaces what, and what each assumes | [`proof`] |
//! | C14 contradiction | [`node`] |
//!
//! A confirmation, once given, outlives the connection that gave it: it came after the last relevant change +
//! `watchLag`, and a kube-proxy that starts later lists no older than that. What a broken connection voids is the stamps
//! from which the next confirmation is being made.

mod change;
mod connection;
mod fence;
mod node;
mod proof;
mod reach;
mod settled;
mod standing;
mod syncs;
mod waited;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

pub use fence::{FenceProgress, FenceReach};
pub use proof::{Assumption, By};
pub use reach::{OperatingSystem, StatusGiven, Why};
pub use standing::Tally;

use super::{
    clock::Monotonic,
    cluster::{FenceRequest, HealthReport, NodeName},
    event::ByFamily,
    listener::Family,
};
use change::Change;
use fence::Requests;
use node::Node;
use standing::Standings;

/// What evidence may have to assume about a kube-proxy. Durations of any length; longer is safer and slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Its handlers have a change, and its first list is not older, than this after the change was written.
    pub watch_lag: Duration,
    /// A sync ends within this.
    pub sync_time: Duration,
    /// A sync that is due starts within this: kube-proxy's `minSyncPeriod`.
    pub min_sync: Duration,
}

/// What is known of one node over one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Its rules include everything up to the last relevant change, now and later.
    Confirmed {
        /// What showed it.
        by: By,
        /// What that rests on.
        assumes: &'static [Assumption],
    },
    /// It answered after a time in which everything should have been done (C7). It ends a drain and confirms nothing.
    Waited,
    /// Nothing yet; it may come.
    Pending,
    /// It shows nothing that could confirm it.
    Unobservable {
        /// Why, for the operator.
        why: Why,
    },
}

/// Everything that is known of the nodes, for one drain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Confirmations {
    bounds: Bounds,
    given: StatusGiven,
    families: ByFamily<OfFamily>,
    nodes: BTreeMap<NodeName, Node>,
}

/// What all nodes share in one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct OfFamily {
    change: Change,
    requests: Requests,
    standings: Standings,
}

// === impl Bounds ===

impl Bounds {
    /// How long after a change a sync has ended that had it in its snapshot, if none failed: its handlers have it after
    /// `watchLag`, a sync that began before that ends within `syncTime`, the next starts within `minSync` and ends
    /// within `syncTime`.
    pub fn steady(&self) -> Duration {
        self.watch_lag.saturating_add(self.sync_time).saturating_add(self.min_sync).saturating_add(self.sync_time)
    }
}

// === impl Confirmations ===

impl Confirmations {
    /// Nothing known of any node. `given` is what the last drain of this agent left (C12).
    pub fn new(bounds: Bounds, given: StatusGiven) -> Self {
        Self { bounds, given, families: ByFamily::default(), nodes: BTreeMap::new() }
    }

    /// Which operating systems' nodes have given a status, for the next drain of this agent (C12).
    pub fn status_given(&self) -> StatusGiven {
        self.given
    }

    /// C10: a relevant change of this family reached us: nothing that was known before it counts. The first list is one.
    pub fn relevant_change(&mut self, family: Family, at: Monotonic) {
        let shared = self.families.get_mut(family);
        shared.change.relevant(at);
        shared.requests.void();
        shared.standings.void();
    }

    /// C10: a Service's policies or ports changed. A relevant change of both families; and as no marker is ordered
    /// after a write to another resource, a fence can be asked only when the nodes have it: after `watchLag`.
    pub fn policy_change(&mut self, at: Monotonic) {
        for family in Family::ALL {
            self.relevant_change(family, at);
            self.families.get_mut(family).change.policy(at + self.bounds.watch_lag);
        }
    }

    /// A node of the cluster, or what is newly known of it.
    pub fn node_added(&mut self, name: &NodeName, system: OperatingSystem) {
        if self.nodes.contains_key(name) {
            self.with_node(name, |node, _| node.add_again(system));
            return;
        }
        let node = Node::new(system);
        for family in Family::ALL {
            let shared = self.families.get_mut(family);
            shared.standings.enter(node.standing(family, &shared.change));
        }
        self.nodes.insert(name.clone(), node);
    }

    /// C12: the Node object is gone. The machine may still route, and nothing can be said of it any more.
    pub fn node_removed(&mut self, name: &NodeName) {
        self.with_node(name, |node, _| node.remove());
    }

    /// C1-C3, C5-C7, C12: what a node's health server answered, or that it did not.
    pub fn health(&mut self, report: &HealthReport) {
        let given = self.with_node(&report.node, |node, shared| node.health(report, shared));
        if let Some(Some(system)) = given {
            self.given.add(system);
        }
    }

    /// The fence was asked at `at`: its markers will be later than everything that we had seen by then.
    pub fn fence_requested(&mut self, request: FenceRequest, at: Monotonic) {
        for family in Family::ALL {
            let shared = self.families.get_mut(family);
            if shared.change.a_fence_counts_from().is_some_and(|from| at >= from) {
                shared.requests.add(request, at);
            }
        }
    }

    /// C4, C11: the fence saw both markers' effect at a node.
    pub fn fence(&mut self, progress: &FenceProgress) {
        self.with_node(&progress.node, |node, shared| node.fence(progress, shared));
    }

    /// C12: the fence tells whether a node can show it anything. It may reach nodes that we do not.
    pub fn fence_reach(&mut self, name: &NodeName, family: Family, reach: &FenceReach) {
        self.with_node(name, |node, _| node.fence_reach(family, reach));
    }

    /// A fence has answered this agent: from now on one that does not is awaited, in later drains too.
    pub fn fence_answered(&mut self) {
        self.given.add_fence();
    }

    /// C14: a counting SYN provably came through this node at `at`. Returns what it contradicts, if that was before it:
    /// nothing that was known of the node by then counts.
    pub fn contradicted(&mut self, name: &NodeName, family: Family, at: Monotonic) -> Option<By> {
        let by = self.with_node(name, |node, shared| node.contradicted(family, shared, at)).flatten()?;
        self.families.get_mut(family).change.fence_again(at);
        Some(by)
    }

    /// What is known of a node; `None` for one that is not in the list of nodes.
    pub fn state(&self, name: &NodeName, family: Family) -> Option<NodeState> {
        Some(self.nodes.get(name)?.state(family, &self.families.get(family).change, self.given))
    }

    /// What is known of every node, in the order of their names: for the verdict, as it takes time with every node.
    pub fn states(&self, family: Family) -> impl Iterator<Item = (&NodeName, NodeState)> {
        let change = &self.families.get(family).change;
        self.nodes.iter().map(move |(name, node)| (name, node.state(family, change, self.given)))
    }

    /// How many nodes are in which state.
    pub fn tally(&self, family: Family) -> Tally {
        self.families.get(family).standings.tally(self.given)
    }

    /// E5: there are nodes, a list or change has been seen, and no node is pending.
    pub fn complete(&self, family: Family) -> bool {
        let tally = self.tally(family);
        self.families.get(family).change.last().is_some() && tally.total() > 0 && tally.pending == 0
    }

    /// The next time after `now` from which an answer of a node, or of the fence, counts for more than before.
    pub fn next_due(&self, now: Monotonic) -> Option<Monotonic> {
        let due = |family: Family| {
            let shared = self.families.get(family);
            let since = shared.change.last()?;
            (self.tally(family).pending > 0).then(|| change::due(since, since, &self.bounds, now)).flatten()
        };
        Family::ALL.into_iter().filter_map(due).min()
    }

    /// The next time after `now` from which this node's answer counts for more than before. It can be later than
    /// [`next_due`](Self::next_due) says, as C7 counts from the arrival of the connection's base.
    pub fn node_due(&self, name: &NodeName, now: Monotonic) -> Option<Monotonic> {
        let node = self.nodes.get(name)?;
        let due = |family: Family| node.due(family, &self.families.get(family).change, &self.bounds, now);
        Family::ALL.into_iter().filter_map(due).min()
    }

    /// Whether a node's health answers can still add anything.
    pub fn wants_health(&self, name: &NodeName, family: Family) -> bool {
        self.nodes.get(name).is_some_and(|node| node.wants_health(family, &self.families.get(family).change))
    }

    /// From when on the fence is to be asked (again); `None` while a request is out that counts, or nothing changed yet.
    pub fn fence_due(&self, family: Family) -> Option<Monotonic> {
        let shared = self.families.get(family);
        let from = shared.change.a_fence_counts_from()?;
        (!shared.requests.any_from(from)).then_some(from)
    }

    /// Lets one node take something in, and keeps the counts: no work for any other node.
    fn with_node<T>(&mut self, name: &NodeName, take: impl FnOnce(&mut Node, &Shared<'_>) -> T) -> Option<T> {
        let node = self.nodes.get_mut(name)?;
        let before = Family::ALL.map(|family| node.standing(family, &self.families.get(family).change));
        let result = take(node, &Shared { families: &self.families, bounds: &self.bounds });
        for (family, before) in Family::ALL.into_iter().zip(before) {
            let shared = self.families.get_mut(family);
            let after = node.standing(family, &shared.change);
            shared.standings.leave(before);
            shared.standings.enter(after);
        }
        Some(result)
    }
}

/// What a node needs of the rest, to judge what it takes in.
struct Shared<'a> {
    families: &'a ByFamily<OfFamily>,
    bounds: &'a Bounds,
}
