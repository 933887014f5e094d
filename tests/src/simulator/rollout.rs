//! A rolling update: 100 pods are replaced, with surge, and a slice is written every 200 ms.

use std::time::Duration;

use lastsyn::core::listener::Family;

use super::{
    chance::Chance,
    cluster::{agent, ms, profile, traffic},
    node::NodeId,
    plan::{CLUSTER, Condition, ControllerPlan, Plan, SlicePlan, Step, What},
    world::HOOK,
};

const PODS: u16 = 100;
/// A quarter.
const SURGE: u16 = 25;
/// Endpoints of a slice.
const SLICE: u16 = 50;
const EVERY: Duration = Duration::from_millis(200);
/// From a pod's deletion until it is gone.
const LEAVES_AFTER: Duration = Duration::from_secs(6);

/// Old pods are 0 to 99, new ones follow. The pod that drains is one of the old ones, somewhere in the middle.
pub(super) fn plan(seed: u64, chance: &mut Chance) -> Plan {
    let nodes: Vec<_> = (0..3).map(|_| profile(chance)).collect();
    let mut pods: Vec<_> = (0..PODS).map(|pod| (NodeId(usize::from(pod) % nodes.len()), Condition::Ready)).collect();
    pods.extend((0..PODS).map(|pod| (NodeId(usize::from(pod + 1) % nodes.len()), Condition::Gone)));
    let slices = (0..2 * PODS / SLICE).map(|slice| {
        // Freed places are taken again: old and new pods share the slices.
        let pods = (0..2 * PODS).filter(|pod| pod % (2 * PODS / SLICE) == slice).collect();
        SlicePlan { service: 0, family: Family::V4, ports: vec![(0, 80)], pods }
    });
    let mut plan = Plan {
        seed,
        families: &[Family::V4],
        slices: slices.collect(),
        nodes,
        services: vec![CLUSTER],
        pods,
        controller: ControllerPlan {
            lag: (ms(20), ms(150)),
            publishes_not_ready: false,
            terse: false,
            deletes_empty: true,
        },
        agent: agent(chance),
        traffic: traffic(chance),
        balancer: None,
        steps: Vec::new(),
    };
    plan.agent.max_wait = ms(25_000);
    steps(&mut plan, chance);
    plan
}

/// Each write is a pod that becomes ready, is deleted, or is gone: in turn, as they come due.
fn steps(plan: &mut Plan, chance: &mut Chance) {
    let deleted = HOOK.saturating_sub(ms(500)) + chance.ms(0, 1500);
    plan.steps.push(Step { at: deleted, what: What::Pod(0, Condition::Terminating) });
    let first = 1 + u16::try_from(chance.index(60)).unwrap_or(0);
    let (mut next_new, mut next_old, mut leaving) = (PODS + first, first, Vec::new());
    for pod in PODS..next_new {
        plan.pods[usize::from(pod)].1 = Condition::Ready;
    }
    for pod in 1..first.saturating_sub(SURGE).max(1) {
        plan.pods[usize::from(pod)].1 = Condition::Gone;
    }
    next_old = next_old.saturating_sub(SURGE).max(1);
    let mut at = ms(100);
    while at < HOOK + plan.agent.max_wait {
        let gone = leaving.first().is_some_and(|(due, _)| *due <= at);
        let what = if gone {
            let (_, pod) = leaving.remove(0);
            What::Pod(pod, Condition::Gone)
        } else if next_new < 2 * PODS && next_new - PODS < next_old + SURGE {
            next_new += 1;
            What::Pod(next_new - 1, Condition::Ready)
        } else if next_old < PODS {
            next_old += 1;
            leaving.push((at + LEAVES_AFTER, next_old - 1));
            What::Pod(next_old - 1, Condition::Terminating)
        } else {
            at += EVERY;
            continue;
        };
        plan.steps.push(Step { at, what });
        at += EVERY;
    }
}
