//! Simpler rules, each of which somebody would write first.

use crate::{
    kube_proxy::KubeProxy,
    setting::{HEALTH_TIMEOUT, Rule},
};

/// What such a rule keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Naive {
    changed: Option<u8>,
    /// The last answer: when its request was sent, and how many stamps it told of.
    last: Option<(u8, u8)>,
    /// When the first edge after the change was seen.
    edge: Option<u8>,
    satisfied: bool,
}

impl Naive {
    pub(crate) fn relevant_change(&mut self, now: u8) {
        *self = Self { changed: Some(now), last: self.last, ..Self::default() };
    }

    pub(crate) fn is_satisfied(self) -> bool {
        self.satisfied
    }

    pub(crate) fn answer(&mut self, rule: Rule, sent: u8, proxy: &KubeProxy, now: u8) {
        let last = self.last.replace((sent, proxy.stamps));
        let Some(changed) = self.changed else { return };
        self.satisfied |= match rule {
            Rule::NewerStamp => proxy.stamped > changed,
            Rule::Settle => {
                let edge = last.is_some_and(|(sent, stamps)| sent >= changed && stamps != proxy.stamps);
                if edge {
                    self.edge = Some(now);
                }
                self.edge.is_some_and(|edge| sent > edge + 1)
            }
            Rule::Healthy => proxy.is_healthy(now) && sent > changed + HEALTH_TIMEOUT,
            Rule::Core(_) | Rule::Fence { .. } => false,
        };
    }
}
