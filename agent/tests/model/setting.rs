//! One case: how large its world is, what is assumed of it, and which rule is judged.

use lastsyn::core::confirm::By;

use crate::{service::Service, witness::Relevance};

/// How large the world is, and what may go wrong in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The last tick.
    pub(crate) ticks: u8,
    /// Writes to the pod's Service.
    pub(crate) writes: u8,
    /// Syncs for the sake of other Services.
    pub(crate) unrelated: u8,
    /// Restarts of kube-proxy.
    pub(crate) restarts: u8,
    /// Syncs that fail.
    pub(crate) failures: u8,
    /// Watches of kube-proxy that are lost, and lists that replace them.
    pub(crate) relists: u8,
    /// The same of the agent's watch.
    pub(crate) agent_relists: u8,
}

/// What kube-proxy is assumed to keep to, in ticks. `None`: nothing is assumed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assumed {
    /// Its handlers have a change within this.
    pub(crate) watch_lag: Option<u8>,
    /// How old a first list can be.
    pub(crate) first_list: FirstList,
    /// A first list comes within this after the start.
    pub(crate) first_list_comes: Option<u8>,
    /// A sync ends within this.
    pub(crate) sync_time: Option<u8>,
    /// A sync that is due starts within this.
    pub(crate) min_sync: Option<u8>,
}

/// How old a first list can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstList {
    /// So many ticks older than its arrival.
    BeforeArrival(u8),
    /// So many ticks older than the process: even if it arrives later.
    BeforeStart(u8),
    /// Of any age.
    Any,
}

/// How kube-proxy keeps what the watch delivered, until its handlers take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// In the order of the stream (client-go 1.33 and newer).
    InOrder,
    /// One place for each object: a later change of one that is queued overtakes others (`DeltaFIFO`).
    DeltaFifo,
}

/// How kube-proxy writes its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// All at once (nftables, iptables).
    AtOnce,
    /// Service by Service, in any order (ipvs).
    ByService,
}

/// Where a marker's effect shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// In the rules.
    Rules,
    /// At the fence Service's health-check node port: the process answers, after a whole sync.
    Port,
}

/// What the agent decides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The product's core, and the weakest evidence that it may end by.
    Core(By),
    /// The same with the fence, which claims to have seen its effect after so many markers.
    Fence {
        /// 1 or 2.
        markers: u8,
    },
    /// A stamp newer than the change.
    NewerStamp,
    /// A changed stamp after the change, and then a tick in which nothing else came.
    Settle,
    /// `healthy: true` when `healthTimeout` has passed since the change.
    Healthy,
}

/// One case.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own, and most cases ask none of them")]
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) assumed: Assumed,
    pub(crate) service: Service,
    /// Which writes void what was confirmed.
    pub(crate) relevance: Relevance,
    pub(crate) queue: Queue,
    pub(crate) writing: Writing,
    pub(crate) effect: Effect,
    pub(crate) rule: Rule,
    /// The agent's own watch may be late; else it learns of each write at once.
    pub(crate) agent_late: bool,
    /// C9: before the end, a read shows that the agent has seen everything.
    pub(crate) consistent_read: bool,
    /// A health answer may take time: what it says is newer than its request.
    pub(crate) round_trip: bool,
    /// The agent asks for health before it has seen a change too.
    pub(crate) early_polls: bool,
    /// The agent takes kube-proxy's lag to be none, and waits for nothing.
    pub(crate) lag_unknown: bool,
    /// A restart of kube-proxy does not break the agent's connection: something in between holds it.
    pub(crate) restarts_unseen: bool,
    /// Another drain wrote the marker object before.
    pub(crate) marker_reused: bool,
}

/// kube-proxy's `healthTimeout`, for [`Rule::Healthy`].
pub(crate) const HEALTH_TIMEOUT: u8 = 2;

impl Setting {
    /// A rule under every bound of one tick, in order, at once, with C9, and with nothing going wrong.
    pub(crate) fn of(rule: Rule) -> Self {
        Self {
            limits: Limits {
                ticks: 3,
                writes: 2,
                unrelated: 1,
                restarts: 0,
                failures: 0,
                relists: 0,
                agent_relists: 0,
            },
            assumed: Assumed {
                watch_lag: Some(1),
                first_list: FirstList::BeforeArrival(1),
                first_list_comes: None,
                sync_time: None,
                min_sync: None,
            },
            service: Service::TWO_ENDPOINTS,
            relevance: Relevance::Core,
            queue: Queue::InOrder,
            writing: Writing::AtOnce,
            effect: Effect::Rules,
            rule,
            agent_late: false,
            consistent_read: true,
            round_trip: false,
            early_polls: false,
            lag_unknown: false,
            restarts_unseen: false,
            marker_reused: false,
        }
    }

    /// Whether the fence is part of it.
    pub(crate) fn markers(&self) -> u8 {
        match self.rule {
            Rule::Fence { markers } => markers,
            _ => 0,
        }
    }
}

impl Setting {
    /// When a sync became due: kept only where a bound counts from it, so that states that differ in nothing else are one.
    pub(crate) fn due_at(&self, now: u8) -> u8 {
        if self.assumed.min_sync.is_some() { now } else { 0 }
    }

    /// When a process started: kept only where a bound counts from it.
    pub(crate) fn started_at(&self, now: u8) -> u8 {
        let counts =
            matches!(self.assumed.first_list, FirstList::BeforeStart(_)) || self.assumed.first_list_comes.is_some();
        if counts { now } else { 0 }
    }

    /// Whether the agent can end without having seen every write.
    pub(crate) fn ends_unaware(&self) -> bool {
        self.agent_late && !self.consistent_read
    }

    /// How many ticks after the last write the rule can be satisfied at the earliest.
    pub(crate) fn shortest_wait(&self) -> u8 {
        let bound = |bound: Option<u8>| bound.unwrap_or(1);
        let Assumed { watch_lag, sync_time, min_sync, .. } = self.assumed;
        let lag = if self.lag_unknown { 0 } else { bound(watch_lag) + 1 };
        match self.rule {
            Rule::Core(By::Waited | By::SettledByWait) => lag + 2 * bound(sync_time) + bound(min_sync),
            Rule::Core(By::SettledByEdge) => lag + bound(sync_time),
            Rule::Core(By::Syncs | By::Fence) | Rule::Fence { .. } => lag,
            Rule::NewerStamp => 1,
            Rule::Settle => 2,
            Rule::Healthy => HEALTH_TIMEOUT + 1,
        }
    }

    /// From how many ticks after a change on health answers count, less one; `None` where the rule does not read them.
    pub(crate) fn answers_count_from(&self) -> Option<u8> {
        match self.rule {
            Rule::Core(By::Syncs | By::SettledByEdge) => Some(self.shortest_wait().saturating_sub(1)),
            Rule::Fence { .. } | Rule::Core(By::Fence) => None,
            _ => Some(0),
        }
    }

    /// Whether the rule reads `healthy`. Where it does not, it is true all the time: that hides least.
    pub(crate) fn asks_health(&self) -> bool {
        self.rule == Rule::Healthy
    }

    /// Whether the rule reads the stamp's time.
    pub(crate) fn asks_stamps(&self) -> bool {
        self.rule == Rule::NewerStamp
    }
}
