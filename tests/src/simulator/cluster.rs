//! An ordinary cluster, and an ordinary drain in it.

use std::time::Duration;

use lastsyn::core::listener::Family;

use super::{
    chance::Chance,
    node::{FirstList, Health, NodeId, Profile, Queue, Writing},
    plan::{AgentPlan, CLUSTER, Condition, ControllerPlan, Plan, SlicePlan, Step, Traffic, What},
    routes::Copies,
    world::HOOK,
};

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A few nodes, a few pods, and the pod's deletion around the hook's call.
pub(super) fn base(seed: u64, chance: &mut Chance) -> Plan {
    let families: &[Family] = if chance.one_in(5) { &[Family::V4, Family::V6] } else { &[Family::V4] };
    let nodes: Vec<Profile> = (0..2 + chance.index(3)).map(|_| profile(chance)).collect();
    let services = 1 + usize::from(chance.one_in(6));
    let others = 1 + chance.index(4);
    let mut pods = vec![(NodeId(0), Condition::Ready)];
    for _ in 0..others {
        let condition = if chance.one_in(8) { Condition::NotReady } else { Condition::Ready };
        pods.push((NodeId(chance.index(nodes.len())), condition));
    }
    let slices = slices(families, services, pods.len(), chance);
    let mut plan = Plan {
        seed,
        families,
        nodes,
        services: vec![CLUSTER; services],
        pods,
        slices,
        controller: ControllerPlan {
            lag: chance.pick(&[(ms(20), ms(200)), (ms(300), ms(2000))]),
            publishes_not_ready: false,
            terse: chance.one_in(3),
            deletes_empty: chance.one_in(2),
        },
        agent: agent(chance),
        traffic: traffic(chance),
        balancer: None,
        steps: Vec::new(),
    };
    let until = if chance.one_in(8) { 9000 } else { 2400 };
    let deleted = HOOK.saturating_sub(ms(900)) + chance.ms(0, until);
    plan.steps.push(Step { at: deleted, what: What::Pod(0, Condition::Terminating) });
    plan
}

/// Every Service and family has one to three slices; the second and third may lack a port that the first names.
fn slices(families: &[Family], services: usize, pods: usize, chance: &mut Chance) -> Vec<SlicePlan> {
    let mut slices = Vec::new();
    for service in 0..services {
        let each = 1 + chance.index(3);
        let named = chance.one_in(4);
        for family in families {
            let first = slices.len();
            for number in 0..each {
                let metrics = named && (number == 0 || chance.one_in(2));
                let ports = if metrics { vec![(0, 80), (1, 9100)] } else { vec![(0, 80)] };
                slices.push(SlicePlan { service, family: *family, ports, pods: Vec::new() });
            }
            for pod in 0..pods {
                let pod_number = u16::try_from(pod).unwrap_or(u16::MAX);
                let at = if pod == 0 { 0 } else { chance.index(each) };
                slices[first + at].pods.push(pod_number);
            }
        }
    }
    slices
}

pub(super) fn profile(chance: &mut Chance) -> Profile {
    Profile {
        lag: chance.pick(&[(ms(20), ms(400)), (ms(20), ms(400)), (ms(1500), ms(1999))]),
        queue: chance.pick(&[Queue::InOrder, Queue::DeltaFifo]),
        sync: chance.pick(&[(ms(5), ms(150)), (ms(5), ms(150)), (ms(50), ms(600)), (ms(600), ms(1999))]),
        min_interval: chance.pick(&[ms(0), ms(200), ms(990), ms(990)]),
        writing: chance.pick(&[Writing::AtOnce, Writing::AtOnce, Writing::ByService]),
        copies: chance.pick(&[Copies::PreferLive, Copies::Any]),
        retry: chance.pick(&[ms(1000), ms(5000), ms(30_000)]),
        busy: chance.pick(&[None, Some(ms(800)), Some(ms(2500)), Some(ms(2500)), Some(ms(10_000))]),
        first_list: FirstList::BeforeArrival,
        clock: chance.off_by_ms(200).into(),
        health: Health::Status,
        there: true,
    }
}

pub(super) fn agent(chance: &mut Chance) -> AgentPlan {
    let lateness = if chance.one_in(12) { ms(300) } else { ms(3) };
    AgentPlan {
        min_wait: chance.pick(&[ms(0), ms(0), ms(3000)]),
        max_wait: chance.pick(&[ms(15_000), ms(25_000), ms(25_000)]),
        fence: chance.one_in(2),
        window: Duration::ZERO,
        exit_at_connections: None,
        lag: chance.pick(&[(ms(5), ms(100)), (ms(5), ms(100)), (ms(400), ms(2500))]),
        latency: chance.pick(&[ms(2), ms(2), ms(40)]),
        interval: chance.pick(&[ms(250), ms(500)]),
        stale_list: chance.pick(&[ms(0), ms(300), ms(2500)]),
        read_failures: chance.pick(&[0, 0, 0, 20]),
        api_forbidden: false,
        services_forbidden: false,
        nodes_forbidden: false,
        reading: chance.pick(&[ms(0), ms(0), ms(2), ms(20)]),
        lateness,
        masqueraded: chance.one_in(4),
    }
}

pub(super) fn traffic(chance: &mut Chance) -> Traffic {
    Traffic {
        mean: chance.pick(&[None, Some(ms(200)), Some(ms(500)), Some(ms(2000))]),
        slow_handshakes: chance.pick(&[0, 0, 5, 30]),
        slow_accepts: chance.pick(&[0, 0, 5, 30]),
        established: 0,
    }
}
