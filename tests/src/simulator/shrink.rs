//! One drain, told; and the fewest steps with which it still fails.

use super::{
    check::Failure,
    plan::{Plan, Step},
    scenario::Scenario,
    timeline::offset,
    world::{HOOK, Rule, World},
};

/// What happened in one drain, for a person to read.
#[derive(Clone, Debug)]
pub struct Account {
    /// The promise that was broken.
    pub failure: Option<Failure>,
    /// What was planned.
    pub steps: Vec<String>,
    /// What happened.
    pub lines: Vec<String>,
}

/// Plays one drain and tells of it; if it fails, with all steps left out that it fails without.
pub fn account(scenario: Scenario, seed: u64, rule: Rule) -> Account {
    let mut plan = scenario.plan(seed);
    let failure = play(&plan, rule);
    if let Some(failure) = &failure {
        shrink(&mut plan, failure, rule);
    }
    let mut world = World::new(&plan, rule, true);
    world.play();
    let hook = world.hook;
    let beginning = hook - HOOK;
    let told = |step: &Step| format!("{} {}", offset(beginning + step.at, hook), step.what);
    let steps = plan.steps.iter().map(told).collect();
    let (failure, timeline, now) = (world.failure, world.timeline, world.now);
    let mut lines = timeline.text(hook);
    if let Some(failure) = &failure {
        lines.push(format!("{} FAILURE {failure}", offset(now, hook)));
    }
    Account { failure, steps, lines }
}

fn play(plan: &Plan, rule: Rule) -> Option<Failure> {
    let mut world = World::new(plan, rule, false);
    world.play();
    world.failure
}

/// Leaves out whatever can be left out, until nothing can.
fn shrink(plan: &mut Plan, failure: &Failure, rule: Rule) {
    let fails = |plan: &Plan| play(plan, rule).is_some_and(|other| other.is_like(failure));
    loop {
        let before = size(plan);
        for without in simpler(plan) {
            if fails(&without) {
                *plan = without;
                break;
            }
        }
        if size(plan) == before {
            return;
        }
    }
}

fn size(plan: &Plan) -> usize {
    let traffic = usize::from(plan.traffic.mean.is_some());
    let busy = plan.nodes.iter().filter(|node| node.busy.is_some()).count();
    plan.steps.len()
        + traffic
        + busy
        + plan.families.len()
        + usize::from(plan.agent.fence)
        + usize::from(plan.agent.nodes_forbidden)
        + plan.agent.read_failures as usize
}

/// Every plan with one thing less.
fn simpler(plan: &Plan) -> Vec<Plan> {
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut other = plan.clone();
        change(&mut other);
        other
    };
    let mut plans = Vec::new();
    for step in 0..plan.steps.len() {
        plans.push(with(&|plan| {
            plan.steps.remove(step);
        }));
    }
    if plan.traffic.mean.is_some() {
        plans.push(with(&|plan| plan.traffic.mean = None));
    }
    if plan.agent.read_failures > 0 {
        plans.push(with(&|plan| plan.agent.read_failures = 0));
    }
    if plan.agent.fence {
        plans.push(with(&|plan| plan.agent.fence = false));
    }
    if plan.agent.nodes_forbidden {
        plans.push(with(&|plan| plan.agent.nodes_forbidden = false));
    }
    for node in (0..plan.nodes.len()).filter(|node| plan.nodes[*node].busy.is_some()) {
        plans.push(with(&|plan| plan.nodes[node].busy = None));
    }
    plans
}
