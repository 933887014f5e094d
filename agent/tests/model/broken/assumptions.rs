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
    "0 Write(Pod(Serving))",
    "0 Poll",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: EndSync",
    "0 Poll",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: EndSync",
    "0 Poll",
    "0 Verdict",
);

// Two edges, one of which a process made as it started (B2). Against this the connection is the process (C1).
fails!(
    syncs_over_a_connection_that_hides_restarts,
    {
        let limits = Limits { restarts: 1, ..QUIET };
        Setting { restarts_unseen: true, ..syncs(limits, limits) }
    },
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Handle",
    "1 Tick",
    "2 Tick",
    "2 Poll",
    "2 kube-proxy: EndSync",
    "2 Poll",
    "2 kube-proxy: Die { written: false }",
    "2 kube-proxy: Start",
    "2 Poll",
    "2 Verdict",
);

// Two edges of a process whose watch is cut (X2).
fails!(
    syncs_without_watch_lag,
    {
        let limits = Limits { unrelated: 2, ..QUIET };
        let setting = syncs(limits, limits);
        Setting { assumed: Assumed { watch_lag: None, ..setting.assumed }, ..setting }
    },
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Unrelated",
    "1 Tick",
    "2 Tick",
    "2 Poll",
    "2 kube-proxy: EndSync",
    "2 Poll",
    "2 kube-proxy: StartSync",
    "2 kube-proxy: EndSync",
    "2 Poll",
    "2 Verdict",
);

// An edge late enough, if the sync that was under way had ended in time (X5).
fails!(
    settled_without_sync_time,
    {
        let limits = Limits { ticks: 4, ..QUIET };
        let setting = settled(By::SettledByEdge, limits, limits);
        Setting { assumed: Assumed { sync_time: None, ..setting.assumed }, ..setting }
    },
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Unrelated",
    "0 kube-proxy: StartSync",
    "0 kube-proxy: Handle",
    "1 Tick",
    "2 Tick",
    "3 Tick",
    "3 Poll",
    "3 kube-proxy: EndSync",
    "3 Poll",
    "3 Verdict",
);

// An edge and the wait, but the sync that had the change failed (S3).
fails!(
    settled_with_a_failed_sync,
    {
        let limits = Limits { ticks: 5, failures: 1, ..QUIET };
        settled(By::SettledByWait, limits, limits)
    },
    "0 Write(Pod(Serving))",
    "0 Poll",
    "0 kube-proxy: Unrelated",
    "1 Tick",
    "1 kube-proxy: StartSync",
    "1 kube-proxy: Handle",
    "2 Tick",
    "2 kube-proxy: EndSync",
    "3 Tick",
    "3 kube-proxy: StartSync",
    "4 Tick",
    "4 kube-proxy: FailSync",
    "5 Tick",
    "5 Poll",
    "5 Verdict",
);

// The wait, but the sync that had the change failed (S9d).
fails!(
    waited_with_a_failed_sync,
    {
        let limits = Limits { ticks: 5, unrelated: 0, failures: 1, ..QUIET };
        waited(limits, limits)
    },
    "0 Write(Pod(Serving))",
    "0 Poll",
    "1 Tick",
    "1 kube-proxy: Handle",
    "2 Tick",
    "2 kube-proxy: StartSync",
    "3 Tick",
    "3 kube-proxy: FailSync",
    "4 Tick",
    "4 kube-proxy: StartSync",
    "5 Tick",
    "5 Poll",
    "5 Verdict",
);

// The wait, but a process that started has no list yet (S9b).
fails!(
    waited_without_a_first_list_in_time,
    {
        let limits = Limits { ticks: 5, unrelated: 0, restarts: 1, ..QUIET };
        let setting = waited(limits, limits);
        Setting { assumed: Assumed { first_list_comes: None, ..setting.assumed }, ..setting }
    },
    "0 Write(Pod(Serving))",
    "0 kube-proxy: Die { written: false }",
    "0 kube-proxy: Start",
    "0 Poll",
    "1 Tick",
    "2 Tick",
    "3 Tick",
    "4 Tick",
    "5 Tick",
    "5 Poll",
    "5 Verdict",
);
