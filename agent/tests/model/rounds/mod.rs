//! The fence as it is built: the product's own `fence::rounds`, with a value for each node that goes round, writes that several
//! drains share, and another writer that takes over. The node's kube-proxy may be as late as it likes, be started again, and get
//! lists in any order.
//!
//! *Once a drain has been told that the node is confirmed, the rules always have that drain's withdrawal.* [`sound`] searches
//! that; [`broken`] has the fence with one marker, and answers that are shared with drains that asked later, which must fail.

mod broken;
mod node;
mod sound;
mod words;
mod world;

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judge {
    /// What the fence tells.
    Rounds,
    /// The first marker's effect is enough.
    OneMarker,
    /// A drain takes the answer of whoever asked first.
    TheFirstAnswer,
}

/// How large the world is, and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The last tick. One tick is the fence's spacing; `firstList` is two.
    pub(crate) ticks: u8,
    /// Drains, each of a pod of its own.
    pub(crate) drains: u8,
    /// Writes of the fence.
    pub(crate) markers: u8,
    /// Restarts of kube-proxy.
    pub(crate) restarts: u8,
    /// Watches of kube-proxy that are lost, and lists that replace them.
    pub(crate) relists: u8,
    /// Answers of the API server that the fence does not get.
    pub(crate) lost: u8,
    /// Other writers that take over.
    pub(crate) leaders: u8,
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) judge: Judge,
    pub(crate) limits: Limits,
}
