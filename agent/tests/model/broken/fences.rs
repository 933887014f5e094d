//! Fences of one marker, and of two without what they need.

use super::{QUIET, fails};
use crate::{
    setting::{Assumed, FirstList, Limits, Queue, Setting, Writing},
    sound::fence,
};

fn one_marker(limits: Limits) -> Setting {
    fence(1, limits, limits)
}

// One marker, after a relist in the order of names (H8).
fails!(
    a_fence_of_one_marker_and_a_relist,
    one_marker(Limits { unrelated: 0, relists: 1, ..QUIET }),
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Relist(2)",
    "0 kube-proxy: HandleListed(Marker)",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
);

// One marker, whose object has an older place in the queue (H5).
fails!(
    a_fence_of_one_marker_and_delta_fifo,
    {
        let setting = one_marker(Limits { unrelated: 0, ..QUIET });
        Setting { queue: Queue::DeltaFifo, marker_reused: true, ..setting }
    },
    "0 OtherMarker",
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Receive",
    "0 kube-proxy: Receive",
    "0 kube-proxy: Receive",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
);

// One marker in the rules of ipvs, which are written Service by Service (H11).
fails!(
    a_fence_of_one_marker_over_ipvs,
    Setting { writing: Writing::ByService, ..one_marker(Limits { unrelated: 0, ..QUIET }) },
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: WriteMarker",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
);

// Two markers in the rules of ipvs, with a relist (H21b).
fails!(
    a_fence_in_the_rules_of_ipvs_and_a_relist,
    {
        let limits = Limits { unrelated: 0, relists: 1, ..QUIET };
        Setting { writing: Writing::ByService, ..fence(2, limits, limits) }
    },
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Relist(2)",
    "0 kube-proxy: HandleListed(Marker)",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: HandleListed(Pod)",
    "0 kube-proxy: WritePod",
    "0 kube-proxy: WriteMarker",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: EndSync",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: WriteMarker",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
);

// Two markers without the consistent read (H3, H4): the agent's watch is late, and the withdrawal was taken back.
fails!(
    a_fence_without_the_consistent_read,
    {
        let limits = Limits { writes: 2, unrelated: 0, ..QUIET };
        Setting { agent_late: true, consistent_read: false, ..fence(2, limits, limits) }
    },
    "0 Write(Pod(Serving))",
    "0 AgentSees",
    "0 AskFence",
    "0 FenceWrites",
    "0 Write(Pod(Ready))",
    "0 kube-proxy: Handle",
    "0 kube-proxy: Handle",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
);

// Two markers, and a process that starts with a list of any age (H14).
fails!(
    a_fence_without_first_list,
    {
        let limits = Limits { unrelated: 0, restarts: 1, ..QUIET };
        let setting = fence(2, limits, limits);
        Setting { assumed: Assumed { first_list: FirstList::Any, ..setting.assumed }, ..setting }
    },
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync, and no longer routes to the pod",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "1 Tick",
    "2 Tick",
    "2 FenceTells",
    "2 Verdict",
    "2 kube-proxy: Die { written: false }",
    "2 kube-proxy: Start",
    "2 kube-proxy: FirstList(0)",
    "2 kube-proxy: StartSync",
    "2 kube-proxy: EndSync, and routes to the pod again",
);

// Two markers that a process showed which then died: the next one lists what is older (H22). Against this C11 waits.
fails!(
    a_fence_that_does_not_wait_for_the_lag,
    {
        let limits = Limits { ticks: 1, unrelated: 0, restarts: 1, ..QUIET };
        Setting { lag_unknown: true, ..fence(2, limits, limits) }
    },
    "0 Write(Pod(Serving))",
    "0 AskFence",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync, and no longer routes to the pod",
    "0 FenceWrites",
    "0 kube-proxy: Handle",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "0 FenceTells",
    "0 Verdict",
    "0 kube-proxy: Die { written: false }",
    "0 kube-proxy: Start",
    "0 kube-proxy: FirstList(0)",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync, and routes to the pod again",
);
