//! E5 and E6: what the cluster holds of a drain's end.

use super::{
    super::{clock::Monotonic, hold::Hold},
    Nodes, Withdrawal,
};

impl Withdrawal {
    /// E5. `evidence_at` is the time of the kernel's evidence: the other conditions are to be read again after the
    /// consistent read's answer (C9).
    pub(crate) fn hold(&self, evidence_at: Monotonic) -> Hold {
        // Nothing can be known of routing, and a later list still can: then this does not hold any more.
        if let Some((_, at)) = &self.blind {
            let until = self.began + self.settings.bounds.steady();
            return if *at > evidence_at { Hold::Unread } else { Hold::until(until, evidence_at) };
        }
        if let Some(from) = self.unlisted_until() {
            return Hold::until(from, evidence_at);
        }
        if !self.withdrawn {
            return Hold::Awaited;
        }
        if let Some(until) = self
            .unobserved_until()
            .max(self.unlisted_family_until())
            .max(self.stronger_until())
            .filter(|until| *until > evidence_at)
        {
            return Hold::Until(until);
        }
        // Without an API there is no read; the newest evidence of the cluster stands in its place.
        let read = || self.read.covers(self.evidence_at.max(evidence_at - self.fresh()));
        let without = self.read.done_without_from().map(|from| from.max(self.evidence_at));
        let closed = without.or_else(read);
        match closed {
            None if self.read.is_under_way() => Hold::Awaited,
            None => Hold::Unasked,
            Some(at) if at > evidence_at => Hold::Unread,
            Some(_) => Hold::Met,
        }
    }

    /// E6.
    pub(crate) fn load_balancer_hold(&self, now: Monotonic) -> Hold {
        self.balancers.met_from().map_or(Hold::Awaited, |time| Hold::until(time, now))
    }

    /// A node that cannot be observed is waited for as long as one whose answers show nothing (C7), so that no fault makes
    /// a drain shorter. `None`: every node can be, or nothing has listed the pod.
    fn unobserved_until(&self) -> Option<Monotonic> {
        let unobserved = match &self.nodes {
            Nodes::Awaited => false,
            Nodes::Unreadable(_) => true,
            Nodes::Listed(nodes) => self.are_too_many(nodes) || self.tally().unobservable > 0,
            Nodes::ByFence(..) => self.tally().unobservable > 0,
        };
        let (_, last) = self.last_change();
        last.filter(|_| unobserved).map(|last| last + self.settings.bounds.steady())
    }

    /// C13: a fence that answers is given as long as a node that shows nothing to replace what is weaker: its markers go by
    /// kube-proxy's own pace, and may show a moment after the health server's answer.
    fn stronger_until(&self) -> Option<Monotonic> {
        let tally = self.tally();
        let weaker = self.fence.answers && tally.assumed + tally.waited > 0;
        self.withdrawn_at.filter(|_| weaker).map(|at| at + self.settings.bounds.steady())
    }

    /// W7: no slice lists the pod, and none has since the first list. That is no withdrawal, and nothing can be confirmed;
    /// but a node that heard of one before the list has had time for it then, as in C7. `None`: the pod is or was listed,
    /// or nobody knows yet.
    fn unlisted_until(&self) -> Option<Monotonic> {
        let listed_at = self.listed_at.filter(|_| !self.routing.has_listed_the_pod())?;
        Some(listed_at + self.settings.bounds.steady())
    }

    /// The same where that is so of one of the pod's families alone.
    fn unlisted_family_until(&self) -> Option<Monotonic> {
        let listed_at = self.listed_at.filter(|_| !self.routing.unlisted_families().is_empty())?;
        Some(listed_at + self.settings.bounds.steady())
    }
}
