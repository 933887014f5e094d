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
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Handle",
    "1 Tick",
    "1 kube-proxy: EndSync",
    "1 Poll",
    "1 Verdict",
);

// Settling: an edge, and then a time without another (D1). The sync that has the change takes longer.
fails!(
    settling,
    without_lag(Rule::Settle),
    "0 Write(Pod(Serving))",
    "0 Poll",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Handle",
    "0 kube-proxy: EndSync",
    "0 Poll",
    "1 Tick",
    "2 Tick",
    "2 Poll",
    "2 Verdict",
);

// `healthy: true` for `healthTimeout` (E2). The end of a sync deletes the pending time of a change that came while it
// ran, and the next hangs.
fails!(
    healthy_for_its_timeout,
    without_lag(Rule::Healthy),
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Handle",
    "0 kube-proxy: EndSync",
    "1 Tick",
    "2 Tick",
    "3 Tick",
    "3 Poll",
    "3 Verdict",
);
