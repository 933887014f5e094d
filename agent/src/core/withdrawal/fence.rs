//! What the fence says, beside the markers that nodes have shown it.

use super::Withdrawal;
use crate::core::{
    clock::Monotonic,
    cluster::{ClusterEvent, Node},
    journal::{Journal, Transition},
};

/// What is known of the fence.
#[derive(Clone, Debug, Default)]
pub(super) struct FenceContact {
    /// It answers.
    pub(super) answers: bool,
    /// Why it did not when it was last tried; in words.
    pub(super) trouble: Option<String>,
    /// The nodes that it tells of, and as of when.
    pub(super) nodes: Option<(Vec<Node>, Monotonic)>,
}

impl Withdrawal {
    /// Takes in what the fence says; any other event says nothing here.
    pub(super) fn fence_says(&mut self, event: &ClusterEvent, now: Monotonic, journal: &mut Journal) {
        match event {
            ClusterEvent::Fence(progress) => self.confirmations.fence(progress),
            ClusterEvent::FenceNodes { nodes, as_of } => {
                self.fence.nodes = Some((nodes.clone(), *as_of));
                self.take_the_fence_s_nodes();
            }
            ClusterEvent::FenceReach { node, family, reach } => self.confirmations.fence_reach(node, *family, reach),
            ClusterEvent::FenceAnswers => {
                self.confirmations.fence_answered();
                if !self.fence.answers {
                    journal.record(now, Transition::FenceAnswers);
                }
                self.fence.answers = true;
                self.fence.trouble = None;
            }
            ClusterEvent::FenceFails(why) => {
                if self.fence.trouble.as_ref() != Some(why) {
                    journal.record(now, Transition::FenceFails(why.clone()));
                }
                self.fence.answers = false;
                self.fence.trouble = Some(why.clone());
            }
            _ => {}
        }
    }
}
