//! The agent: its watch, its polls, and the rule that it decides by.

use std::{sync::Arc, time::Duration};

use lastsyn::core::{
    clock::Monotonic,
    cluster::{ConnectionId, FamilyHealth, HealthOutcome, HealthReport, HealthStatus, NodeName, NodeTime},
    confirm::{Bounds, By, Confirmations, NodeState, OperatingSystem, StatusGiven},
    listener::Family,
};

use crate::{
    api::Log,
    fence::Fence,
    kube_proxy::KubeProxy,
    naive::Naive,
    setting::{Assumed, Rule, Setting},
    watch::Watch,
};

/// The agent, until its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Agent {
    pub(crate) watch: Watch,
    /// When it delivered the last relevant change.
    changed: Option<u8>,
    pub(crate) judge: Judge,
    pub(crate) fence: Fence,
    /// A health request on its way: when it was sent, and to which process.
    pub(crate) request: Option<(u8, u8)>,
}

/// What it decides by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Judge {
    /// Shared, as most steps of the world are not the agent's.
    Core(Arc<Confirmations>),
    Naive(Naive),
}

pub(crate) fn node() -> NodeName {
    NodeName("a".to_owned())
}

/// A tick is a second of the agent's clock.
pub(crate) fn at(tick: u8) -> Monotonic {
    Monotonic::from_nanos(u64::from(tick) * 1_000_000_000)
}

/// The agent's waits are longer than the assumed bounds by a nanosecond: see the top of this test. A bound that is not
/// assumed is waited for all the same.
fn bounds(setting: &Setting) -> Bounds {
    let Assumed { watch_lag, sync_time, min_sync, .. } = setting.assumed;
    let ticks = |bound: Option<u8>| Duration::from_secs(bound.unwrap_or(1).into());
    Bounds {
        watch_lag: if setting.lag_unknown { Duration::ZERO } else { ticks(watch_lag) + Duration::from_nanos(1) },
        sync_time: ticks(sync_time),
        min_sync: ticks(min_sync),
    }
}

impl Agent {
    pub(crate) fn new(setting: &Setting) -> Self {
        let judge = match setting.rule {
            Rule::Core(_) | Rule::Fence { .. } => {
                let mut core = Confirmations::new(bounds(setting), StatusGiven::default());
                core.node_added(&node(), OperatingSystem::Linux);
                Judge::Core(Arc::new(core))
            }
            Rule::NewerStamp | Rule::Settle | Rule::Healthy => Judge::Naive(Naive::default()),
        };
        Self { watch: Watch::new(setting), changed: None, judge, fence: Fence::default(), request: None }
    }

    /// Whether a health answer to a request of now can count for anything that an answer later on cannot: what comes
    /// before is void, or judged by its stamp's change since an answer that does not count.
    pub(crate) fn answers_count(&self, setting: &Setting, now: u8) -> bool {
        self.changed.is_some_and(|changed| setting.answers_count_from().is_some_and(|wait| now >= changed + wait))
    }

    /// Its watch delivers the next write.
    pub(crate) fn see(&mut self, log: &Log, setting: &Setting, now: u8) {
        let relevant = self.watch.deliver(log, setting, now);
        self.changed(relevant, now);
    }

    /// A list of this version takes the place of its watch.
    pub(crate) fn list(&mut self, version: usize, log: &Log, setting: &Setting, now: u8) {
        let relevant = self.watch.list(version, log, setting, now);
        self.changed(relevant, now);
    }

    fn changed(&mut self, relevant: bool, now: u8) {
        if relevant {
            self.changed = Some(now);
            match &mut self.judge {
                Judge::Core(core) => Arc::make_mut(core).relevant_change(Family::V4, at(now)),
                Judge::Naive(naive) => naive.relevant_change(now),
            }
        }
    }

    /// The node's health server answers a request that was sent at `sent` to the process `process`, or nobody does.
    pub(crate) fn answer(&mut self, sent: u8, process: u8, proxy: &KubeProxy, setting: &Setting, now: u8) {
        let process = if setting.restarts_unseen { 1 } else { process };
        let same = proxy.up && (setting.restarts_unseen || proxy.process == process);
        match &mut self.judge {
            Judge::Core(core) => {
                let health = FamilyHealth { last_updated: NodeTime(proxy.stamps.into()), healthy: true };
                // Each process has a connection of its own; one that found nobody comes between.
                let (connection, outcome) = if same {
                    (2 * u64::from(process), HealthOutcome::Status(HealthStatus { v4: Some(health), v6: None }))
                } else {
                    (2 * u64::from(process) + 1, HealthOutcome::Refused)
                };
                Arc::make_mut(core).health(&HealthReport {
                    node: node(),
                    connection: ConnectionId(connection),
                    sent_at: at(sent),
                    received_at: at(now),
                    outcome,
                });
            }
            Judge::Naive(naive) if same => naive.answer(setting.rule, sent, proxy, now),
            Judge::Naive(_) => {}
        }
    }

    /// Whether its rule calls the node confirmed.
    pub(crate) fn is_satisfied(&self, rule: Rule) -> bool {
        let weakest = match rule {
            Rule::Core(by) => by,
            _ => By::Fence,
        };
        match &self.judge {
            Judge::Core(core) => match core.state(&node(), Family::V4) {
                Some(NodeState::Confirmed { by, .. }) => by >= weakest,
                Some(NodeState::Waited) => weakest == By::Waited,
                _ => false,
            },
            Judge::Naive(naive) => naive.is_satisfied(),
        }
    }
}
