//! W4: whether kube-proxy could fall back to a pod that is terminating and still serves, in *any* mixture of the
//! slices' versions that a node may hold. It does where no endpoint of the Service port and family is ready.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    ops::RangeInclusive,
};

use super::{
    super::cluster::SliceName,
    listing::{Listing, Peer, ServicePort, SliceId},
};

/// Which endpoints kube-proxy asks before it falls back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// All of them.
    Cluster,
    /// Those of the pod's node, where a policy is `Local`. Whatever stands there stands in the cluster too, so the
    /// question to all endpoints, which another policy or a Service's internal clients ask, needs no asking of its own.
    Node,
}

/// The endpoints that keep the pod from being a fallback.
///
/// A witness is another address and port that one slice has listed ready in every version since the last relevant
/// change, the one then in force included, and that no slice has listed not ready in any. Whatever versions a node
/// holds of the slices, it has that address ready: the one slice gives it, and no copy that kube-proxy might take
/// instead is worse. An address that has been ready all the time, but in one slice after the other, is none: a node
/// may have the first slice's later version, and the second one's earlier.
#[derive(Clone, Debug)]
pub(super) struct Witnesses {
    scope: Scope,
    standing: BTreeSet<Witness>,
}

/// Ordered by address first: all copies of one lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Witness {
    address: IpAddr,
    port: u16,
    slice: SliceId,
}

// === impl Scope ===

impl Scope {
    fn takes(self, peer: Peer) -> bool {
        match self {
            Self::Cluster => peer.ready,
            Self::Node => peer.ready && peer.on_node,
        }
    }
}

// === impl Witnesses ===

impl Witnesses {
    /// Those that stand in the versions now in force. Costs as much as the Service's slices have endpoints.
    pub(super) fn among(scope: Scope, port: &ServicePort, in_force: &BTreeMap<SliceName, Listing>) -> Self {
        let mut witnesses = Self { scope, standing: BTreeSet::new() };
        for listing in in_force.values() {
            for (address, number, peer) in listing.peers(port) {
                if scope.takes(peer) {
                    witnesses.standing.insert(Witness { address, port: number, slice: listing.id });
                }
            }
        }
        for listing in in_force.values() {
            witnesses.drop_contradicted(port, listing);
        }
        witnesses
    }

    /// None at all.
    pub(super) fn none(scope: Scope) -> Self {
        Self { scope, standing: BTreeSet::new() }
    }

    /// Whether one is left.
    pub(super) fn stand(&self) -> bool {
        !self.standing.is_empty()
    }

    /// Drops those that a slice's next version ends. `before` is what the slice said until now, `after` what it says:
    /// `None` where it is gone. Costs as much as these two have endpoints.
    pub(super) fn judge(&mut self, port: &ServicePort, before: Option<&Listing>, after: Option<&Listing>) {
        if self.standing.is_empty() {
            return;
        }
        if let Some(before) = before {
            // A witness by this slice is ready in `before` too: nothing else needs to be looked at.
            for (address, number, _) in before.peers(port) {
                let still = after.and_then(|after| after.peer(port, address, number));
                if !still.is_some_and(|peer| self.scope.takes(peer)) {
                    self.standing.remove(&Witness { address, port: number, slice: before.id });
                }
            }
        }
        if let Some(after) = after {
            self.drop_contradicted(port, after);
        }
    }

    /// Drops every copy of an address that `listing` does not list ready: kube-proxy may take that copy.
    fn drop_contradicted(&mut self, port: &ServicePort, listing: &Listing) {
        for (address, number, peer) in listing.peers(port) {
            if self.scope.takes(peer) {
                continue;
            }
            while let Some(copy) = self.standing.range(copies(address, number)).next().copied() {
                self.standing.remove(&copy);
            }
        }
    }
}

fn copies(address: IpAddr, port: u16) -> RangeInclusive<Witness> {
    let copy = |slice| Witness { address, port, slice };
    copy(SliceId(u64::MIN))..=copy(SliceId(u64::MAX))
}
