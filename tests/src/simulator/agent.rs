//! The agent: the product's core, and the loop around it, which may be late.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use lastsyn::core::{
    clock::Monotonic,
    drain::Core,
    event::Evidence,
    settings::{RoutingSettings, Settings, Watch},
};

use super::{
    node::BOUNDS,
    plan::{AgentPlan, Plan},
    pod,
    routes::HOME,
    translate,
};

/// `drain.quietPeriod`.
pub(super) const QUIET_PERIOD: Duration = Duration::from_secs(2);
/// `drain.handshakeGrace`.
pub(super) const HANDSHAKE_GRACE: Duration = Duration::from_secs(3);
/// `poll.timeout`.
const POLL_TIMEOUT: Duration = Duration::from_secs(2);

/// One agent, from its start until it dies.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) core: Core,
    /// When its loop wakes by itself; later than the core asked for.
    pub(super) wakes_at: Option<Monotonic>,
    /// What the core asked for.
    pub(super) due: Option<Monotonic>,
    /// When the hook was called at it.
    pub(super) called_at: Option<Monotonic>,
    /// Readings on their way.
    pub(super) readings: VecDeque<Evidence>,
    /// When the newest evidence that the core has was taken.
    pub(super) read_at: Monotonic,
    /// The most by which any of its steps can have been late.
    pub(super) lateness: Duration,
    /// It gets no processor until then.
    pub(super) stands_until: Monotonic,
    /// How often in a row it was due at the same time.
    pub(super) spins: u32,
}

impl Agent {
    pub(super) fn new(plan: &Plan, now: Monotonic) -> Self {
        Self {
            core: Core::new(settings(plan), now),
            wakes_at: None,
            due: None,
            called_at: None,
            readings: VecDeque::new(),
            read_at: now,
            lateness: plan.agent.lateness + plan.agent.reading,
            stands_until: now,
            spins: 0,
        }
    }
}

fn settings(plan: &Plan) -> Settings {
    let AgentPlan { min_wait, max_wait, fence, window, exit_at_connections, .. } = plan.agent;
    Settings {
        watch: Watch::Ports(vec![pod::port()]),
        quiet_period: QUIET_PERIOD,
        retry_wait: Duration::from_secs(8),
        min_wait,
        max_wait,
        handshake_grace: HANDSHAKE_GRACE,
        exit_at_connections,
        routing: Some(RoutingSettings {
            pod: translate::pod_addresses(plan.families),
            node: translate::node_name(HOME),
            bounds: BOUNDS,
            load_balancer_window: window,
            poll_timeout: POLL_TIMEOUT,
            fence,
            accept: BTreeSet::new(),
            max_nodes: 500,
        }),
        no_routing: lastsyn::core::settings::NoRouting::Off,
        restart_guard: None,
        fail_after: None,
        stop_reserve: Duration::from_secs(10),
        linger: Duration::ZERO,
    }
}
