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
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its watch is lost, and a list with the first 2 writes replaces it",
    "0 kube-proxy: its handlers take the marker of the list",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain; the node still routes to the pod",
);

// One marker, whose object has an older place in the queue (H5).
fails!(
    a_fence_of_one_marker_and_delta_fifo,
    {
        let setting = one_marker(Limits { unrelated: 0, ..QUIET });
        Setting { queue: Queue::DeltaFifo, marker_reused: true, ..setting }
    },
    "0 API: the fence writes the marker for another drain",
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its watch puts the next write into the queue",
    "0 kube-proxy: its watch puts the next write into the queue",
    "0 kube-proxy: its watch puts the next write into the queue",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain; the node still routes to the pod",
);

// One marker in the rules of ipvs, which are written Service by Service (H11).
fails!(
    a_fence_of_one_marker_over_ipvs,
    Setting { writing: Writing::ByService, ..one_marker(Limits { unrelated: 0, ..QUIET }) },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync writes the fence's Service",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain; the node still routes to the pod",
);

// Two markers in the rules of ipvs, with a relist (H21b).
fails!(
    a_fence_in_the_rules_of_ipvs_and_a_relist,
    {
        let limits = Limits { unrelated: 0, relists: 1, ..QUIET };
        Setting { writing: Writing::ByService, ..fence(2, limits, limits) }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its watch is lost, and a list with the first 2 writes replaces it",
    "0 kube-proxy: its handlers take the marker of the list",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take slice A of the list",
    "0 kube-proxy: the sync writes the pod's Service",
    "0 kube-proxy: the sync writes the fence's Service",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync writes the fence's Service",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain; the node still routes to the pod",
);

// Two markers without the consistent read (H3, H4): the agent's watch is late, and the withdrawal was taken back.
fails!(
    a_fence_without_the_consistent_read,
    {
        let limits = Limits { writes: 2, unrelated: 0, ..QUIET };
        Setting { agent_late: true, consistent_read: false, ..fence(2, limits, limits) }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: its watch delivers the next write",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 API: slice A lists the pod ready",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain; the node still routes to the pod",
);

// Two markers, and a process that starts with a list of any age (H14).
fails!(
    a_fence_without_first_list,
    {
        let limits = Limits { unrelated: 0, restarts: 1, ..QUIET };
        let setting = fence(2, limits, limits);
        Setting { assumed: Assumed { first_list: FirstList::Any, ..setting.assumed }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node no longer routes to the pod",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "1 time passes",
    "2 time passes",
    "2 fence: sees the last marker at the node, and tells the agent",
    "2 agent: ends the drain",
    "2 kube-proxy: the process dies",
    "2 kube-proxy: a process starts, and stamps",
    "2 kube-proxy: a list from before the first write is its first",
    "2 kube-proxy: a sync takes its snapshot",
    "2 kube-proxy: the sync has written all, and stamps; the node routes to the pod again",
);

// Two markers that a process showed which then died: the next one lists what is older (H22). Against this C11 waits.
fails!(
    a_fence_that_does_not_wait_for_the_lag,
    {
        let limits = Limits { ticks: 1, unrelated: 0, restarts: 1, ..QUIET };
        Setting { lag_unknown: true, ..fence(2, limits, limits) }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks the fence",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node no longer routes to the pod",
    "0 API: the fence writes a marker",
    "0 kube-proxy: its handlers take the next write",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 fence: sees the last marker at the node, and tells the agent",
    "0 agent: ends the drain",
    "0 kube-proxy: the process dies",
    "0 kube-proxy: a process starts, and stamps",
    "0 kube-proxy: a list from before the first write is its first",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps; the node routes to the pod again",
);
