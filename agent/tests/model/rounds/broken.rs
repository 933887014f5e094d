//! What the fence must not do.

use super::{Case, Judge, Limits, sound::told};
use crate::search::run;

fn violation(name: &str, judge: Judge, limits: Limits) -> Option<Vec<String>> {
    let case = Case { judge, limits };
    run(name, case, &told(case)).violation
}

// One marker, after a relist that brings it before the pod's slice.
#[test]
fn rounds_of_one_marker_and_a_relist() {
    let limits = Limits { ticks: 2, drains: 1, markers: 1, restarts: 0, relists: 1, lost: 0, leaders: 0 };
    let trace = violation("rounds_of_one_marker_and_a_relist", Judge::OneMarker, limits).expect("a violation");
    println!("    {}", trace.join("\n    "));
    assert_eq!(
        trace,
        [
            "0 API: pod A is withdrawn",
            "0 agent A: asks the fence",
            "0 fence: looks at the node",
            "0 fence: sends a marker",
            "0 API: has the fence's request",
            "0 kube-proxy: its watch is lost, and a list with the first 2 writes replaces it",
            "0 kube-proxy: its handlers take the marker of the list",
            "0 kube-proxy: a sync takes its snapshot",
            "0 kube-proxy: the sync has written all",
            "0 fence: has the API server's answer",
            "0 fence: looks at the node",
            "1 time passes",
            "2 time passes",
            "2 agent A: is told that the node is confirmed; the node's rules do not have its withdrawal",
        ]
    );
}

// The second drain withdraws its pod when the first one's markers are on their way, and takes their effect for its own.
#[test]
fn rounds_that_are_shared_with_a_drain_that_asked_later() {
    let limits = Limits { ticks: 2, drains: 2, markers: 2, restarts: 0, relists: 0, lost: 0, leaders: 0 };
    let trace = violation("rounds_that_are_shared_with_a_drain_that_asked_later", Judge::TheFirstAnswer, limits)
        .expect("a violation");
    println!("    {}", trace.join("\n    "));
    assert_eq!(
        trace,
        [
            "0 API: pod A is withdrawn",
            "0 agent A: asks the fence",
            "0 kube-proxy: its handlers take the next write",
            "0 fence: looks at the node",
            "0 fence: sends a marker",
            "0 API: has the fence's request",
            "0 kube-proxy: its handlers take the next write",
            "0 kube-proxy: a sync takes its snapshot",
            "0 kube-proxy: the sync has written all",
            "0 fence: has the API server's answer",
            "0 fence: looks at the node",
            "1 time passes",
            "1 fence: sends a marker",
            "1 API: has the fence's request",
            "1 API: pod B is withdrawn",
            "1 agent B: asks the fence",
            "1 kube-proxy: its handlers take the next write",
            "1 kube-proxy: a sync takes its snapshot",
            "1 kube-proxy: the sync has written all",
            "1 fence: has the API server's answer",
            "2 time passes",
            "2 fence: looks at the node",
            "2 agent A: is told that the node is confirmed",
            "2 agent B: is told that the node is confirmed; the node's rules do not have its withdrawal",
        ]
    );
}
