//! The scenarios: for each seed a cluster, and what happens to it.

use std::{fmt, str::FromStr, time::Duration};

use lastsyn::core::{cluster::TrafficPolicy, listener::Family};

use super::{
    api::Policy,
    chance::{Chance, Stream},
    cluster::{base, ms},
    faults,
    node::{FirstList, NodeId},
    plan::{CLUSTER, Condition, Plan, Step, What},
    rollout,
    routes::HOME,
    world::HOOK,
};

/// What happens around a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scenario {
    /// Nothing but the withdrawal.
    Calm,
    /// 100 pods are replaced, with a write every 200 ms.
    RollingUpdate,
    /// kube-proxies stand still.
    Freeze,
    /// kube-proxies are killed and started again.
    Restart,
    /// kube-proxies are cut off from the API server.
    Cut,
    /// Watches are later than is assumed, and syncs longer, or fail.
    Lag,
    /// Slices are written all the time.
    Churn,
    /// Watches are lost and listed anew.
    Relist,
    /// `Local` policies, last ready pods, withdrawals that are taken back, policies that change.
    Policy,
    /// The fence, with everything that can happen to kube-proxies.
    Fence,
    /// A load balancer that asks a health-check node port.
    LoadBalancer,
    /// The nodes' wall clocks are wrong, and set.
    Clocks,
    /// The sensor has gaps, SYNs are dropped, the agent is late, or dies.
    Sensor,
    /// Everything.
    All,
}

/// There is no such scenario.
#[derive(Debug, thiserror::Error)]
#[error("there is no scenario `{0}`; there are: {names}", names = Scenario::names())]
pub struct UnknownScenario(String);

impl Scenario {
    /// Every scenario.
    pub const ALL: [Self; 14] = [
        Self::Calm,
        Self::RollingUpdate,
        Self::Freeze,
        Self::Restart,
        Self::Cut,
        Self::Lag,
        Self::Churn,
        Self::Relist,
        Self::Policy,
        Self::Fence,
        Self::LoadBalancer,
        Self::Clocks,
        Self::Sensor,
        Self::All,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::RollingUpdate => "rolling-update",
            Self::Freeze => "freeze",
            Self::Restart => "restart",
            Self::Cut => "cut",
            Self::Lag => "lag",
            Self::Churn => "churn",
            Self::Relist => "relist",
            Self::Policy => "policy",
            Self::Fence => "fence",
            Self::LoadBalancer => "load-balancer",
            Self::Clocks => "clocks",
            Self::Sensor => "sensor",
            Self::All => "all",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The plan of a seed.
    pub(super) fn plan(self, seed: u64) -> Plan {
        let mut chance = Chance::of(seed, Stream::Plan);
        let chance = &mut chance;
        let mut plan = if self == Self::RollingUpdate { rollout::plan(seed, chance) } else { base(seed, chance) };
        match self {
            Self::Calm | Self::RollingUpdate => {}
            Self::Freeze => faults::freezes(&mut plan, chance),
            Self::Restart => faults::restarts(&mut plan, chance),
            Self::Cut => faults::cuts(&mut plan, chance),
            Self::Lag => faults::lags(&mut plan, chance),
            Self::Churn => churn(&mut plan, chance),
            Self::Relist => {
                faults::relists(&mut plan, chance);
                churn(&mut plan, chance);
            }
            Self::Policy => policies(&mut plan, chance),
            Self::Fence => {
                plan.agent.fence = true;
                if chance.one_in(3) {
                    faults::restart_after_the_withdrawal(&mut plan, chance);
                }
                faults::mixed(&mut plan, chance);
                faults::of_the_fence(&mut plan, chance);
            }
            Self::LoadBalancer => load_balancer(&mut plan, chance),
            Self::Clocks => faults::clocks(&mut plan, chance),
            Self::Sensor => faults::of_the_agent(&mut plan, chance),
            Self::All => everything(&mut plan, chance),
        }
        plan.steps.sort_by_key(|step| step.at);
        plan
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scenario {
    type Err = UnknownScenario;

    fn from_str(text: &str) -> Result<Self, UnknownScenario> {
        let found = Self::ALL.into_iter().find(|scenario| scenario.name() == text);
        found.ok_or_else(|| UnknownScenario(text.to_owned()))
    }
}

/// A time around the drain.
pub(super) fn some_time(chance: &mut Chance, until: u64) -> Duration {
    chance.between(Duration::from_millis(100), HOOK + ms(until))
}

pub(super) fn add(plan: &mut Plan, at: Duration, what: What) {
    plan.steps.push(Step { at, what });
}

pub(super) fn some_node(plan: &Plan, chance: &mut Chance) -> NodeId {
    NodeId(chance.index(plan.nodes.len()))
}

/// Other pods come, go, and change their minds; endpoints move.
fn churn(plan: &mut Plan, chance: &mut Chance) {
    // Two writers that list the pod, of which one is slow.
    let of_first = |slice: &usize| {
        let (first, slice) = (&plan.slices[0], &plan.slices[*slice]);
        (first.service, first.family) == (slice.service, slice.family)
    };
    let beside: Vec<usize> = (1..plan.slices.len()).filter(of_first).collect();
    if !beside.is_empty() && chance.one_in(6) {
        let other = chance.pick(&beside);
        plan.slices[other].pods.push(0);
        let slow = if chance.one_in(2) { 0 } else { other };
        add(plan, Duration::ZERO, What::Neglect(slow, chance.ms(500, 15_000)));
        if chance.one_in(2) {
            let at = some_time(chance, 4000);
            add(plan, at.max(HOOK), What::Pod(0, Condition::Dying));
        }
    }
    for _ in 0..2 + chance.index(8) {
        let at = some_time(chance, 9000);
        let other = 1 + chance.index(plan.pods.len() - 1);
        let other = u16::try_from(other).unwrap_or(1);
        let (from, to) = (chance.index(plan.slices.len()), chance.index(plan.slices.len()));
        let of_one = |one: usize, other: usize| {
            let (one, other) = (&plan.slices[one], &plan.slices[other]);
            (one.service, one.family) == (other.service, other.family)
        };
        let what = match chance.index(8) {
            0 | 1 => What::Pod(other, Condition::Ready),
            2 => What::Pod(other, Condition::NotReady),
            3 => What::Pod(other, Condition::Terminating),
            4 => What::Pod(other, Condition::Gone),
            5 | 6 if of_one(from, to) => What::Move(if chance.one_in(4) { 0 } else { other }, from, to),
            7 if of_one(from, to) => What::Copy(if chance.one_in(4) { 0 } else { other }, to),
            5 => What::Neglect(to, chance.ms(500, 9000)),
            _ => What::Pod(other, chance.pick(&[Condition::Dying, Condition::Ready])),
        };
        add(plan, at, what);
    }
}

/// The pod is, or becomes, the last ready one; policies are `Local`, and change.
fn policies(plan: &mut Plan, chance: &mut Chance) {
    let policy = |chance: &mut Chance| {
        let one = |chance: &mut Chance| chance.pick(&[TrafficPolicy::Cluster, TrafficPolicy::Local]);
        Policy { external: one(chance), internal: one(chance), ..CLUSTER }
    };
    for service in 0..plan.services.len() {
        plan.services[service] = policy(chance);
        if chance.one_in(4) {
            let (at, policy) = (some_time(chance, 6000), policy(chance));
            add(plan, at, What::Policy(service, policy));
        }
    }
    plan.controller.publishes_not_ready = chance.one_in(16);
    // The pod's readiness, after it became the fallback.
    if chance.one_in(2) {
        let (at, what) = (some_time(chance, 6000), chance.pick(&[Condition::Dying, Condition::Gone]));
        add(plan, at.max(HOOK), What::Pod(0, what));
    }
    // The withdrawal is taken back, for a while or for good.
    for pod in 1..plan.pods.len() {
        let pod = u16::try_from(pod).unwrap_or(1);
        if chance.one_in(3) {
            let at = some_time(chance, 8000);
            let what = chance.pick(&[Condition::NotReady, Condition::Terminating, Condition::Dying, Condition::Gone]);
            add(plan, at, What::Pod(pod, what));
            if !chance.one_in(3) {
                let after = chance.ms(1, 3000);
                add(plan, at + after, What::Pod(pod, Condition::Ready));
            }
        }
    }
    if chance.one_in(12) {
        let at = some_time(chance, 6000);
        add(plan, at, What::Pod(0, Condition::Ready));
        let after = chance.ms(1, 2000);
        add(plan, at + after, What::Pod(0, Condition::Dying));
    }
}

fn load_balancer(plan: &mut Plan, chance: &mut Chance) {
    let period = chance.ms(1500, 3000);
    plan.balancer = Some(period);
    // As long as the load balancer takes after the port's first zero, and little more.
    plan.agent.window = period * super::balancer::FAILURES + ms(500);
    for service in &mut plan.services {
        service.external = TrafficPolicy::Local;
    }
    plan.services[0].health_check_node_port = Some(30_000);
    if chance.one_in(3) {
        faults::mixed(plan, chance);
    }
    // It stops serving at once, and its node is busy: the withdrawal is known before the port says zero.
    if chance.one_in(3)
        && let Some(step) = plan.steps.first_mut()
    {
        step.what = What::Pod(0, Condition::Dying);
        let home = &mut plan.nodes[HOME.0];
        (home.lag, home.sync) = ((ms(20), ms(400)), (ms(50), ms(600)));
        (home.busy, home.min_interval) = (Some(ms(800)), ms(990));
    }
    // Without another ready pod on the node it is the fallback until it is gone.
    let at = some_time(chance, 4000);
    add(plan, at.max(HOOK), What::Pod(0, chance.pick(&[Condition::Dying, Condition::Gone])));
}

fn everything(plan: &mut Plan, chance: &mut Chance) {
    let parts: [fn(&mut Plan, &mut Chance); 10] = [
        faults::of_the_fence,
        faults::mixed,
        faults::mixed,
        faults::lags,
        faults::clocks,
        faults::of_the_agent,
        faults::relists,
        churn,
        policies,
        load_balancer,
    ];
    for part in parts {
        if chance.one_in(4) {
            part(plan, chance);
        }
    }
    if chance.one_in(2) {
        for node in &mut plan.nodes {
            node.first_list = FirstList::BeforeStart;
        }
    }
    plan.agent.api_forbidden = chance.one_in(60);
    plan.agent.services_forbidden = chance.one_in(60);
    debug_assert!(plan.families.contains(&Family::V4));
}
