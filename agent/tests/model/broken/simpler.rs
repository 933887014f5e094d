//! Rules that somebody would write first.

use super::{QUIET, fails};
use crate::setting::{Assumed, Rule, Setting};

/// Everything as quick as can be: no lag at all.
fn without_lag(rule: Rule) -> Setting {
    let assumed = Assumed { watch_lag: Some(0), ..Setting::of(rule).assumed };
    Setting { limits: QUIET, assumed, ..Setting::of(rule) }
}

// The rule that everybody writes first: a stamp newer than the change (A1). A sync was under way.
fails!(
    a_newer_stamp,
    without_lag(Rule::NewerStamp),
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take the next write",
    "1 time passes",
    "1 kube-proxy: the sync has written all, and stamps",
    "1 agent: asks for the node's health, and has the answer",
    "1 agent: ends the drain; the node still routes to the pod",
);

// Settling: an edge, and then a time without another (D1). The sync that has the change takes longer.
fails!(
    settling,
    without_lag(Rule::Settle),
    "0 API: slice A lists the pod serving",
    "0 agent: asks for the node's health, and has the answer",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 agent: asks for the node's health, and has the answer",
    "1 time passes",
    "2 time passes",
    "2 agent: asks for the node's health, and has the answer",
    "2 agent: ends the drain; the node still routes to the pod",
);

// `healthy: true` for `healthTimeout` (E2). The end of a sync deletes the pending time of a change that came while it
// ran, and the next hangs.
fails!(
    healthy_for_its_timeout,
    without_lag(Rule::Healthy),
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: the sync has written all, and stamps",
    "1 time passes",
    "2 time passes",
    "3 time passes",
    "3 agent: asks for the node's health, and has the answer",
    "3 agent: ends the drain; the node still routes to the pod",
);
