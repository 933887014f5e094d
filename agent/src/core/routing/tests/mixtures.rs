//! The oracle: what a kube-proxy can do that holds each slice at *some* version since the last relevant change. Written
//! after kube-proxy's own code (`CategorizeEndpoints`, `addEndpoints`), from the slices' contents alone: it shares
//! nothing with `Routing`.

use super::scene::{Conditions, DEAD, FAR, LEAVING, NEAR, POD, READY, UNREADY};

/// What a slice says of the pod, and of the peers near and far; `None` where it does not list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(pub(super) [Option<Conditions>; 3]);

const WHO: [u8; 3] = [POD, NEAR, FAR];

/// The versions of each slice that a node may hold: the one in force at the last relevant change, and all since.
pub(super) type Since = Vec<Vec<Content>>;

impl Content {
    pub(super) const EMPTY: Self = Self([None; 3]);

    /// Everything that a slice can say of the pod and of so many peers.
    pub(super) fn all(peers: usize) -> Vec<Self> {
        let of_pod = [None, Some(READY), Some(LEAVING), Some(DEAD)];
        let of_peer = [None, Some(READY), Some(UNREADY)];
        let of = |exists: bool| if exists { &of_peer[..] } else { &of_peer[..1] };
        let mut all = Vec::new();
        for pod in of_pod {
            // A single peer is on the pod's node, so that it counts for `Local` too.
            for near in of(peers >= 1) {
                all.extend(of(peers >= 2).iter().map(|far| Self([pod, *near, *far])));
            }
        }
        all
    }

    pub(super) fn endpoints(self) -> Vec<(u8, Conditions)> {
        WHO.into_iter().zip(self.0).filter_map(|(who, says)| Some((who, says?))).collect()
    }
}

/// Whether a kube-proxy that holds these versions may route to the pod. Of several copies of an address it may take any.
pub(super) fn may_route(held: &[Content], local: bool) -> bool {
    choices(held, 0).any(|pod| choices(held, 1).any(|near| choices(held, 2).any(|far| routes([pod, near, far], local))))
}

/// The copies of one address that may be taken; `None` alone where nobody lists it.
fn choices(held: &[Content], who: usize) -> impl Iterator<Item = Option<Conditions>> {
    let copies = move || held.iter().filter_map(move |content| content.0[who]);
    copies().map(Some).chain(copies().next().is_none().then_some(None))
}

/// One outcome, on the pod's own node: the only one where `Local` leads to it.
fn routes(taken: [Option<Conditions>; 3], local: bool) -> bool {
    let is_ready = |taken: &Option<Conditions>| taken.is_some_and(|[ready, ..]| ready);
    let rests = |taken: &Option<Conditions>| taken.is_some_and(|[_, serving, terminating]| serving && terminating);
    let [pod, near, _] = taken;
    let cluster = if taken.iter().any(is_ready) { is_ready(&pod) } else { rests(&pod) };
    let on_node = if [pod, near].iter().any(is_ready) { is_ready(&pod) } else { rests(&pod) };
    cluster || (local && on_node)
}

/// Some mixture routes to the pod: then this one.
pub(super) fn mixture_that_routes(since: &Since, local: bool) -> Option<Vec<Content>> {
    fn search(since: &[Vec<Content>], held: &mut Vec<Content>, local: bool) -> bool {
        let Some((versions, rest)) = since.split_first() else {
            return may_route(held, local);
        };
        versions.iter().any(|version| {
            held.push(*version);
            let found = search(rest, held, local);
            if !found {
                held.pop();
            }
            found
        })
    }
    let mut held = Vec::new();
    search(since, &mut held, local).then_some(held)
}

/// The version of each slice that is in force.
pub(super) fn in_force(since: &Since) -> Vec<Content> {
    since.iter().map(|versions| versions.last().copied().unwrap_or(Content::EMPTY)).collect()
}
