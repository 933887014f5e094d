//! Counts that hold for any number of nodes, and what a node costs.

use proptest::prelude::*;

use super::*;

/// What one node takes, without its name: 5,000 of them are to fit beside everything else in 16 MiB.
#[test]
fn a_node_takes_little_memory() {
    assert!(size_of::<Node>() <= 512, "{} bytes", size_of::<Node>());
}

/// Something that happens to one of three nodes, or to all.
#[derive(Clone, Debug)]
enum Step {
    Change,
    Policy,
    Added(u8),
    Removed(u8),
    Answer(u8, i128, bool),
    Silent(u8, HealthOutcome),
    Asked(u64),
    Fence(u8, u64),
    Contradicted(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..3_u8;
    prop_oneof![
        1 => Just(Step::Change),
        1 => Just(Step::Policy),
        3 => node.clone().prop_map(Step::Added),
        1 => node.clone().prop_map(Step::Removed),
        9 => (node.clone(), 0..3_i128, any::<bool>()).prop_map(|(node, stamp, ok)| Step::Answer(node, stamp, ok)),
        3 => (node.clone(), prop_oneof![
                Just(HealthOutcome::Refused), Just(HealthOutcome::TimedOut), Just(HealthOutcome::Broken), Just(no_status())
             ]).prop_map(|(node, outcome)| Step::Silent(node, outcome)),
        2 => (0..3_u64).prop_map(Step::Asked),
        3 => (node.clone(), 0..3_u64).prop_map(|(node, request)| Step::Fence(node, request)),
        1 => node.prop_map(Step::Contradicted),
    ]
}

impl Scene {
    fn take(&mut self, step: Step, millis: u64) {
        let name = |index: u8| ["a", "b", "c"].get(usize::from(index)).copied().unwrap_or("a");
        match step {
            Step::Change => self.change(millis),
            Step::Policy => self.confirmations.policy_change(at(millis)),
            Step::Added(index) => self.confirmations.node_added(&node(name(index)), OperatingSystem::Linux),
            Step::Removed(index) => self.confirmations.node_removed(&node(name(index))),
            Step::Answer(index, stamp, healthy) => {
                self.report(name(index), millis, status(Some((stamp, healthy)), None));
            }
            Step::Silent(index, outcome) => {
                self.report(name(index), millis, outcome);
                self.reconnect();
            }
            Step::Asked(request) => self.ask_fence(request, millis),
            Step::Fence(index, request) => self.confirmations.fence(&FenceProgress {
                request: FenceRequest(request),
                node: node(name(index)),
                family: Family::V4,
                stood_at: at(millis),
                received_at: at(millis),
            }),
            Step::Contradicted(index) => {
                self.confirmations.contradicted(&node(name(index)), Family::V4, at(millis));
            }
        }
    }

    /// What [`Confirmations::tally`] must say, node by node.
    fn counted(&self, family: Family) -> Tally {
        let mut tally = Tally::default();
        for (_, state) in self.confirmations.states(family) {
            match state {
                NodeState::Confirmed { by: By::Fence, .. } => tally.confirmed += 1,
                NodeState::Confirmed { .. } => tally.assumed += 1,
                NodeState::Waited => tally.waited += 1,
                NodeState::Pending => tally.pending += 1,
                NodeState::Unobservable { .. } => tally.unobservable += 1,
            }
        }
        tally
    }
}

proptest! {
    #[test]
    fn the_counts_are_those_of_the_nodes(steps in proptest::collection::vec((step(), 0..2_000_u64), 0..60)) {
        let mut scene = Scene::new();
        let mut now = 0;
        for (step, passed) in steps {
            now += passed;
            scene.take(step, now);
            for family in Family::ALL {
                prop_assert_eq!(scene.confirmations.tally(family), scene.counted(family));
            }
        }
    }
}
