//! What can go wrong, on the nodes and in the agent.

use super::{
    chance::Chance,
    cluster::{ms, profile},
    node::{FirstList, Health, NodeId, Profile},
    plan::{Plan, What},
    scenario::{add, some_node, some_time},
    world::HOOK,
};

pub(super) fn freezes(plan: &mut Plan, chance: &mut Chance) {
    for _ in 0..=chance.index(3) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 8000));
        let length = if chance.one_in(6) { ms(60_000) } else { chance.ms(50, 6000) };
        add(plan, at, What::Freeze(node, length));
    }
}

pub(super) fn restarts(plan: &mut Plan, chance: &mut Chance) {
    if chance.one_in(2) {
        restart_after_the_withdrawal(plan, chance);
    }
    if chance.one_in(2) {
        weakest_lists(plan);
    }
    for _ in 0..=chance.index(3) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 14_000));
        let down = chance.pick(&[ms(1), ms(100), ms(1500), ms(4000)]);
        let written = chance.one_in(2);
        add(plan, at, What::Kill(node, chance.between(down / 2, down), written));
    }
}

/// A kube-proxy dies just when evidence of the withdrawal can have been gathered, and its successor lists what is as old as
/// can be.
pub(super) fn restart_after_the_withdrawal(plan: &mut Plan, chance: &mut Chance) {
    weakest_lists(plan);
    let deleted = plan.steps.first().map_or(HOOK, |step| step.at);
    let (node, at) = (some_node(plan, chance), deleted.max(HOOK) + chance.ms(100, 3000));
    plan.nodes[node.0].lag = (ms(20), ms(400));
    plan.nodes[node.0].sync = (ms(5), ms(150));
    let (down, written) = (chance.ms(1, 300), chance.one_in(2));
    add(plan, at, What::Kill(node, down, written));
}

/// The agent has the fence alone for the nodes, nodes come and go, and the fence is away for a while.
pub(super) fn of_the_fence(plan: &mut Plan, chance: &mut Chance) {
    if !plan.agent.fence {
        return;
    }
    plan.agent.nodes_forbidden = chance.one_in(2);
    if chance.one_in(3) {
        let length = chance.pick(&[ms(200), ms(3000), ms(60_000)]);
        add(plan, some_time(chance, 7000), What::FenceAway(chance.between(length / 2, length)));
    }
    if chance.one_in(4) {
        let node = NodeId(plan.nodes.len());
        plan.nodes.push(Profile { there: false, ..profile(chance) });
        add(plan, some_time(chance, 7000), What::NodeJoins(node));
    }
}

pub(super) fn cuts(plan: &mut Plan, chance: &mut Chance) {
    for _ in 0..=chance.index(2) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 7000));
        let length = chance.pick(&[ms(1500), ms(8000), ms(60_000)]);
        let (length, relists) = (chance.between(length / 4, length), chance.one_in(2));
        add(plan, at, What::Cut(node, length, relists));
    }
}

/// What is assumed does not hold, here and there.
pub(super) fn lags(plan: &mut Plan, chance: &mut Chance) {
    for node in 0..plan.nodes.len() {
        let Profile { lag, sync, min_interval, .. } = &mut plan.nodes[node];
        match chance.index(6) {
            0 => *lag = (ms(1000), ms(6000)),
            1 => *lag = (ms(4000), ms(20_000)),
            2 => *sync = (ms(500), ms(6000)),
            3 => *min_interval = ms(4000),
            4 => {
                let (at, syncs) = (some_time(chance, 5000), 1 + u32::from(chance.one_in(2)));
                add(plan, at, What::FailSyncs(NodeId(node), syncs));
            }
            _ => {}
        }
    }
}

/// Watches are lost and listed anew: the nodes', and the agent's.
pub(super) fn relists(plan: &mut Plan, chance: &mut Chance) {
    for _ in 0..=chance.index(3) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 6000));
        add(plan, at, What::Cut(node, chance.ms(1, 1900), true));
    }
    for _ in 0..chance.index(3) {
        let at = some_time(chance, 8000);
        let relists = !chance.one_in(3);
        add(plan, at, What::AgentGap(chance.ms(1, 3000), relists));
    }
}

pub(super) fn clocks(plan: &mut Plan, chance: &mut Chance) {
    for node in &mut plan.nodes {
        if chance.one_in(2) {
            node.clock = chance.off_by_ms(3_600_000).into();
        }
    }
    for _ in 0..=chance.index(3) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 8000));
        add(plan, at, What::StepClock(node, chance.off_by_ms(10_000)));
    }
}

/// The sensor, the server, the agent and its callers.
pub(super) fn of_the_agent(plan: &mut Plan, chance: &mut Chance) {
    if chance.one_in(4) {
        plan.agent.exit_at_connections = Some(chance.index(3) as u64);
        plan.traffic.established = 1 + chance.index(5) as u64;
    }
    for _ in 0..=chance.index(4) {
        let at = some_time(chance, 8000);
        let what = match chance.index(10) {
            0 | 1 => What::SensorGap(chance.ms(50, 3000), chance.one_in(2)),
            2 | 3 => What::Overflow(chance.ms(50, 2500)),
            4 => What::Burst(u8::try_from(1 + chance.index(12)).unwrap_or(1)),
            5 => What::AgentStands(chance.ms(50, 4000)),
            6 => What::AgentRestarts(chance.ms(50, 4000)),
            7 => What::CallerJoins,
            8 => What::CallersLeave,
            _ => What::Terminate,
        };
        add(plan, at, what);
    }
}

/// Whatever can happen to kube-proxies.
pub(super) fn mixed(plan: &mut Plan, chance: &mut Chance) {
    if chance.one_in(2) {
        weakest_lists(plan);
    }
    for _ in 0..=chance.index(5) {
        let (node, at) = (some_node(plan, chance), some_time(chance, 10_000));
        let what = match chance.index(7) {
            0 => What::Freeze(node, chance.ms(50, 5000)),
            1 | 2 => What::Kill(node, chance.ms(1, 3000), chance.one_in(2)),
            3 => What::Cut(node, chance.ms(50, 8000), chance.one_in(2)),
            4 => What::FailSyncs(node, 1),
            5 => What::BreakConnection(node),
            _ => What::StepClock(node, -1_000_000_000),
        };
        add(plan, at, what);
    }
    nodes_come_and_go(plan, chance);
    if chance.one_in(10) {
        let node = some_node(plan, chance);
        plan.nodes[node.0].health = chance.pick(&[Health::NoStatus, Health::Refused]);
    }
}

fn nodes_come_and_go(plan: &mut Plan, chance: &mut Chance) {
    if chance.one_in(4) {
        plan.nodes.push(profile(chance));
        let joins = NodeId(plan.nodes.len() - 1);
        plan.nodes[joins.0].there = false;
        let at = some_time(chance, 8000);
        add(plan, at, What::NodeJoins(joins));
    }
    if chance.one_in(12) {
        let (leaves, at) = (NodeId(1), some_time(chance, 6000));
        add(plan, at.max(HOOK), What::NodeLeaves(leaves));
    }
}

/// A process' first list can take long, and be as old as `firstList` allows.
fn weakest_lists(plan: &mut Plan) {
    for node in &mut plan.nodes {
        node.first_list = FirstList::BeforeStart;
    }
}
