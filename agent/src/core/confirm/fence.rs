//! C4: the fence. C11: when causal evidence counts.
//!
//! After the last relevant change the fence writes a marker; when its effect shows at a node it writes a second, and
//! when that shows too, every change before the first marker is in the node's rules. One marker is not enough: in a
//! relist, or in the queue of a client that keeps one place for each object, the first may overtake the change.

use std::collections::BTreeMap;

use crate::core::{
    clock::Monotonic,
    cluster::{FenceRequest, NodeName},
    listener::Family,
};

use super::Bounds;

/// The fence saw the effect of both its markers at a node, over one connection of its own that was open from before the
/// first was written: one process showed both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceProgress {
    /// What was asked. Its markers were written after it came.
    pub request: FenceRequest,
    /// Where they showed.
    pub node: NodeName,
    /// In which family's rules.
    pub family: Family,
    /// A time at which that connection is known to have stood, by our clock: the node answered over it to a request that
    /// was sent no earlier. It is when we sent ours to the fence, where the fence asks the node for us.
    pub stood_at: Monotonic,
    /// When we knew.
    pub received_at: Monotonic,
}

/// What the fence knows of a node whose rules have not shown both markers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FenceReach {
    /// They may yet.
    Awaited,
    /// They will not; in words.
    Unobservable(String),
}

/// The requests that were sent after the last relevant change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests(BTreeMap<FenceRequest, Monotonic>);

// === impl FenceProgress ===

impl FenceProgress {
    /// Whether it shows that the node has everything up to `since`, the last relevant change or contradiction.
    ///
    /// A kube-proxy that starts later than a change + `watchLag` lists no older than the change. One that started before
    /// may yet go back behind what its predecessor showed: so the process that showed the markers must have lived until
    /// then.
    pub(super) fn proves(&self, requests: &Requests, since: Monotonic, bounds: &Bounds) -> bool {
        let asked_in_time = requests.0.get(&self.request).is_some_and(|asked| *asked >= since);
        asked_in_time && self.stood_at >= since + bounds.watch_lag
    }
}

// === impl Requests ===

impl Requests {
    /// A request was sent after the last relevant change.
    pub(super) fn add(&mut self, request: FenceRequest, at: Monotonic) {
        self.0.insert(request, at);
    }

    /// There was a relevant change: no marker of theirs need be later than it.
    pub(super) fn void(&mut self) {
        self.0.clear();
    }

    /// Whether one was sent at or after `from`.
    pub(super) fn any_from(&self, from: Monotonic) -> bool {
        self.0.values().any(|at| *at >= from)
    }
}
