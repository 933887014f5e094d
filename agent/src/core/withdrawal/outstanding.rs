//! What an end by evidence still lacked of the cluster at the bound, where every node had shown what it was to show.

use super::{super::verdict::NotObserved, Nodes, Withdrawal, tell::unobserved};

impl Withdrawal {
    /// `None` where something else held the drain: a Service that routes to the pod, or nodes, which are named by themselves.
    pub(crate) fn outstanding(&self) -> Option<NotObserved> {
        if !self.is_unrouted() || self.summary.families.is_empty() || !self.are_complete() {
            return None;
        }
        match &self.nodes {
            Nodes::ByFence(..) if !self.withdrawn => {
                let why =
                    "whether one has joined is not known: the fence has listed none since the last change".to_owned();
                Some(unobserved("nodes", None, why))
            }
            // C9.
            _ if self.read.is_under_way() => {
                let why = "the last read, whether all that was told still stands, was not answered".to_owned();
                Some(unobserved("api", None, why))
            }
            _ => None,
        }
    }
}
