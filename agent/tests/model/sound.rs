//! Each kind of evidence, under what it assumes and nothing else: no violation in the whole world.
//!
//! `C4` and so on are the rules of the design. What a kind does not assume is unbounded: under `syncs` a sync may take
//! for ever, under the fence a watch may.

use lastsyn::core::confirm::By;

use crate::{
    search::deep,
    setting::{Effect, FirstList, Limits, Queue, Rule, Setting, Writing},
};

/// The world must be searched to its end; the larger one only where it is asked for.
macro_rules! holds {
    ($name:ident, $setting:expr) => {
        #[test]
        fn $name() {
            let setting: crate::setting::Setting = $setting;
            let found = crate::search::search(stringify!($name), setting);
            assert_eq!(found.violation, None);
            assert!(found.confirms, "a rule that never confirms would be sound");
        }
    };
}
pub(crate) use holds;

fn limits(ticks: u8, writes: u8, unrelated: u8, restarts: u8, failures: u8, relists: u8) -> Limits {
    Limits { ticks, writes, unrelated, restarts, failures, relists, agent_relists: 0 }
}

fn of(rule: Rule, bounded: Limits, larger: Limits) -> Setting {
    Setting { limits: if deep() { larger } else { bounded }, ..Setting::of(rule) }
}

/// C4, C11: `firstList`, and no bound on any lag.
pub(crate) fn fence(markers: u8, bounded: Limits, larger: Limits) -> Setting {
    let mut setting = of(Rule::Fence { markers }, bounded, larger);
    setting.assumed.watch_lag = None;
    setting.assumed.first_list = FirstList::BeforeStart(1);
    setting
}

/// C6: `watchLag` and `syncTime`; its first form needs `minSync` too.
pub(crate) fn settled(by: By, bounded: Limits, larger: Limits) -> Setting {
    let mut setting = of(Rule::Core(by), bounded, larger);
    setting.assumed.sync_time = Some(1);
    setting.assumed.min_sync = (by != By::SettledByEdge).then_some(1);
    setting
}

/// C7: every bound, and that a process that starts has its first list in time.
pub(crate) fn waited(bounded: Limits, larger: Limits) -> Setting {
    let mut setting = settled(By::Waited, bounded, larger);
    setting.assumed.first_list_comes = Some(1);
    setting
}

pub(crate) fn syncs(bounded: Limits, larger: Limits) -> Setting {
    of(Rule::Core(By::Syncs), bounded, larger)
}

holds!(c4_fence_when_the_agent_is_late, {
    let setting = fence(2, limits(2, 2, 0, 0, 0, 0), limits(3, 2, 1, 0, 0, 0));
    Setting { agent_late: true, ..setting }
});

holds!(c4_fence_over_relists, fence(2, limits(2, 1, 0, 0, 0, 2), limits(2, 2, 0, 0, 1, 2)));

holds!(c4_fence_over_restarts, fence(2, limits(3, 1, 0, 1, 0, 0), limits(3, 2, 0, 1, 1, 0)));

holds!(c4_fence_with_delta_fifo_and_a_marker_that_is_used_again, {
    let setting = fence(2, limits(2, 1, 0, 0, 0, 1), limits(2, 2, 0, 0, 0, 2));
    Setting { queue: Queue::DeltaFifo, marker_reused: true, ..setting }
});

holds!(c4_fence_by_the_health_check_node_port_over_ipvs, {
    let setting = fence(2, limits(2, 1, 0, 0, 0, 1), limits(3, 1, 0, 1, 0, 1));
    Setting { writing: Writing::ByService, effect: Effect::Port, ..setting }
});

holds!(c5_syncs_over_restarts, syncs(limits(3, 1, 1, 1, 1, 0), limits(3, 2, 1, 2, 0, 0)));

holds!(c5_syncs_over_failed_syncs_and_relists, syncs(limits(3, 2, 1, 0, 1, 1), limits(4, 3, 2, 0, 1, 1)));

holds!(c5_syncs_over_ipvs, {
    let setting = syncs(limits(3, 1, 1, 0, 0, 1), limits(3, 2, 1, 1, 0, 1));
    Setting { writing: Writing::ByService, ..setting }
});

holds!(c5_syncs_with_answers_that_take_time, {
    let setting = syncs(limits(3, 1, 1, 0, 0, 0), limits(3, 2, 1, 0, 0, 0));
    Setting { round_trip: true, early_polls: true, agent_late: true, ..setting }
});

holds!(c6_settled_by_a_late_edge, settled(By::SettledByEdge, limits(4, 1, 1, 1, 1, 0), limits(5, 2, 1, 1, 1, 1)));

holds!(c6_settled_by_waiting, settled(By::SettledByWait, limits(6, 1, 1, 0, 0, 1), limits(7, 2, 1, 0, 0, 1)));

holds!(c6_settled_by_waiting_over_restarts, {
    settled(By::SettledByWait, limits(5, 1, 0, 1, 0, 0), limits(7, 1, 1, 1, 0, 0))
});

holds!(c6_settled_with_answers_that_take_time, {
    let setting = settled(By::SettledByWait, limits(5, 1, 1, 0, 0, 0), limits(7, 1, 1, 0, 0, 1));
    Setting { round_trip: true, early_polls: true, ..setting }
});

holds!(c7_waited, waited(limits(6, 1, 1, 0, 0, 1), limits(7, 2, 1, 0, 0, 1)));

holds!(c7_waited_over_restarts, waited(limits(6, 1, 0, 1, 0, 0), limits(8, 1, 1, 1, 0, 0)));

holds!(c7_waited_with_answers_that_take_time, {
    let setting = waited(limits(5, 1, 1, 0, 0, 0), limits(6, 1, 0, 1, 0, 0));
    Setting { round_trip: true, early_polls: true, ..setting }
});
