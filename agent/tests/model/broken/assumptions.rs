//! Stamps without what they assume.

use lastsyn::core::confirm::By;

use super::{QUIET, fails};
use crate::{
    setting::{Assumed, Limits, Setting},
    sound::{settled, syncs, waited},
};

// Two edges that do not wait for the lag (X7).
fails!(
    syncs_that_do_not_wait_for_the_lag,
    {
        let limits = Limits { unrelated: 2, ..QUIET };
        Setting { lag_unknown: true, ..syncs(limits, limits) }
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks for the node's health, and has the answer",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 agent: asks for the node's health, and has the answer",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: the sync has written all, and stamps",
    "0 agent: asks for the node's health, and has the answer",
    "0 agent: ends the drain; the node still routes to the pod",
);

// Two edges, one of which a process made as it started (B2). Against this the connection is the process (C1).
fails!(
    syncs_over_a_connection_that_hides_restarts,
    {
        let limits = Limits { restarts: 1, ..QUIET };
        Setting { restarts_unseen: true, ..syncs(limits, limits) }
    },
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take the next write",
    "1 time passes",
    "2 time passes",
    "2 agent: asks for the node's health, and has the answer",
    "2 kube-proxy: the sync has written all, and stamps",
    "2 agent: asks for the node's health, and has the answer",
    "2 kube-proxy: the process dies",
    "2 kube-proxy: a process starts, and stamps",
    "2 agent: asks for the node's health, and has the answer",
    "2 agent: ends the drain; the node still routes to the pod",
);

// Two edges of a process whose watch is cut (X2).
fails!(
    syncs_without_watch_lag,
    {
        let limits = Limits { unrelated: 2, ..QUIET };
        let setting = syncs(limits, limits);
        Setting { assumed: Assumed { watch_lag: None, ..setting.assumed }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: another Service's change asks for a sync",
    "1 time passes",
    "2 time passes",
    "2 agent: asks for the node's health, and has the answer",
    "2 kube-proxy: the sync has written all, and stamps",
    "2 agent: asks for the node's health, and has the answer",
    "2 kube-proxy: a sync takes its snapshot",
    "2 kube-proxy: the sync has written all, and stamps",
    "2 agent: asks for the node's health, and has the answer",
    "2 agent: ends the drain; the node still routes to the pod",
);

// An edge late enough, if the sync that was under way had ended in time (X5).
fails!(
    settled_without_sync_time,
    {
        let limits = Limits { ticks: 4, ..QUIET };
        let setting = settled(By::SettledByEdge, limits, limits);
        Setting { assumed: Assumed { sync_time: None, ..setting.assumed }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: another Service's change asks for a sync",
    "0 kube-proxy: a sync takes its snapshot",
    "0 kube-proxy: its handlers take the next write",
    "1 time passes",
    "2 time passes",
    "3 time passes",
    "3 agent: asks for the node's health, and has the answer",
    "3 kube-proxy: the sync has written all, and stamps",
    "3 agent: asks for the node's health, and has the answer",
    "3 agent: ends the drain; the node still routes to the pod",
);

// An edge and the wait, but the sync that had the change failed (S3).
fails!(
    settled_with_a_failed_sync,
    {
        let limits = Limits { ticks: 5, failures: 1, ..QUIET };
        settled(By::SettledByWait, limits, limits)
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks for the node's health, and has the answer",
    "0 kube-proxy: another Service's change asks for a sync",
    "1 time passes",
    "1 kube-proxy: a sync takes its snapshot",
    "1 kube-proxy: its handlers take the next write",
    "2 time passes",
    "2 kube-proxy: the sync has written all, and stamps",
    "3 time passes",
    "3 kube-proxy: a sync takes its snapshot",
    "4 time passes",
    "4 kube-proxy: the sync fails, and is to be tried again",
    "5 time passes",
    "5 agent: asks for the node's health, and has the answer",
    "5 agent: ends the drain; the node still routes to the pod",
);

// The wait, but the sync that had the change failed (S9d).
fails!(
    waited_with_a_failed_sync,
    {
        let limits = Limits { ticks: 5, unrelated: 0, failures: 1, ..QUIET };
        waited(limits, limits)
    },
    "0 API: slice A lists the pod serving",
    "0 agent: asks for the node's health, and has the answer",
    "1 time passes",
    "1 kube-proxy: its handlers take the next write",
    "2 time passes",
    "2 kube-proxy: a sync takes its snapshot",
    "3 time passes",
    "3 kube-proxy: the sync fails, and is to be tried again",
    "4 time passes",
    "4 kube-proxy: a sync takes its snapshot",
    "5 time passes",
    "5 agent: asks for the node's health, and has the answer",
    "5 agent: ends the drain; the node still routes to the pod",
);

// The wait, but a process that started has no list yet (S9b).
fails!(
    waited_without_a_first_list_in_time,
    {
        let limits = Limits { ticks: 5, unrelated: 0, restarts: 1, ..QUIET };
        let setting = waited(limits, limits);
        Setting { assumed: Assumed { first_list_comes: None, ..setting.assumed }, ..setting }
    },
    "0 API: slice A lists the pod serving",
    "0 kube-proxy: the process dies",
    "0 kube-proxy: a process starts, and stamps",
    "0 agent: asks for the node's health, and has the answer",
    "1 time passes",
    "2 time passes",
    "3 time passes",
    "4 time passes",
    "5 time passes",
    "5 agent: asks for the node's health, and has the answer",
    "5 agent: ends the drain; the node still routes to the pod",
);
