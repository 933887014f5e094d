//! C7: `waited`. It ends a drain and confirms nothing: it needs every bound, and that no sync failed.

use crate::core::clock::Monotonic;

use super::{Bounds, connection::Answer};

/// Whether an answer shows that somebody is there after a time in which everything up to `since` should have been done.
///
/// The time counts from the arrival of the connection's base where that is later: a kube-proxy that started after the
/// change may not have synced at all, and a node that died keeps its rules.
pub(super) fn proves(answer: &Answer, since: Monotonic, bounds: &Bounds) -> bool {
    answer.healthy && answer.sent_at >= since.max(answer.base_at) + bounds.steady()
}
