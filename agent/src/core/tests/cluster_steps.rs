//! Random things that a cluster does while a drain runs, and one drain through them.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    cluster::{Conditions, LEAVING, READY, node, routing},
    truth::ms,
    world::{START, World, settings},
};
use crate::core::{
    clock::Monotonic,
    cluster::{
        ClusterEvent, ConnectionId, FamilyHealth, FenceRequest, HealthOutcome, HealthReport, HealthStatus, NodeName,
        NodeTime, ReadOutcome, TrafficPolicy,
    },
    confirm::{Bounds, FenceProgress},
    drain::Core,
    event::{Action, Event},
    listener::Family,
    settings::{RoutingSettings, Settings},
    verdict::Reason,
};

const NODES: [&str; 2] = ["here", "there"];

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Time passes, in milliseconds.
    Wait(u64),
    /// The clock jumps, as after a suspended machine: nobody asks the core in between.
    Jump(u64),
    /// The clock comes before it is due, by some thousandths of what is left.
    Early(u32),
    Syn,
    /// The slice has a new version: what it says of the pod and of the peer; `false`: the watch does not say so.
    Slice(Conditions, Option<Conditions>, bool),
    /// The watch is listed anew.
    Relist,
    Policy(TrafficPolicy),
    /// A node's health server answers a request that was sent some time before.
    Health {
        node: usize,
        sync: bool,
        sent_before: u64,
    },
    /// It does not answer, or not with a status.
    Silent {
        node: usize,
        how: usize,
    },
    /// A node shows the markers of the request to the fence that is that many before the last.
    Fence {
        node: usize,
        requests_before: usize,
    },
    /// The API server answers the last read.
    Read(usize),
    Joins,
    Leaves,
    /// C14: a SYN came through a node.
    Through(usize),
    BreakSensor,
    MendSensor,
}

/// What a drain came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) lasted: Duration,
    pub(super) reason: Reason,
}

impl Outcome {
    /// It claims that the cluster has withdrawn the pod.
    pub(super) fn claims(self) -> bool {
        matches!(self.reason, Reason::RoutedAway | Reason::Synced)
    }
}

pub(super) const MAX_WAIT: Duration = Duration::from_secs(20);

/// What the script knows of a drain.
pub(super) struct Drain {
    pub(super) world: World,
    /// When each request to the fence was made.
    pub(super) fences: Vec<(FenceRequest, Monotonic)>,
    /// Which requests each node has shown, since when nothing contradicted it.
    pub(super) shown: [Vec<FenceRequest>; 2],
    /// When the watch last said something that may route to the pod.
    pub(super) routed: Monotonic,
    /// What the slice last said of the pod and of the peer.
    last: (Conditions, Option<Conditions>),
    undelivered: bool,
    policy: TrafficPolicy,
    connections: [u64; 2],
    stamps: [i128; 2],
    asked: usize,
}

/// Everything, or what leaves two drains comparable of which one has more evidence.
pub(super) fn step(everything: bool) -> impl Strategy<Value = Step> {
    let conditions = || prop::sample::select(&[READY, LEAVING, [false, false, true], [false, false, false]][..]);
    let node = || 0_usize..2;
    let mut steps = vec![
        (10, (10_u64..900).prop_map(Step::Wait).boxed()),
        (1, (10_u64..9000).prop_map(Step::Jump).boxed()),
        (1, Just(Step::Syn).boxed()),
        (2, Just(Step::Slice(LEAVING, Some(READY), true)).boxed()),
        (
            2,
            (conditions(), prop::option::of(conditions()), prop::bool::weighted(if everything { 0.8 } else { 1.0 }))
                .prop_map(|(pod, peer, said)| Step::Slice(pod, peer, said))
                .boxed(),
        ),
        (1, Just(Step::Relist).boxed()),
        (1, prop::sample::select(&[TrafficPolicy::Cluster, TrafficPolicy::Local][..]).prop_map(Step::Policy).boxed()),
        (
            8,
            (node(), prop::bool::weighted(0.8), 0_u64..300)
                .prop_map(|(node, sync, sent_before)| Step::Health { node, sync, sent_before })
                .boxed(),
        ),
        (1, (node(), 0_usize..4).prop_map(|(node, how)| Step::Silent { node, how }).boxed()),
        (
            6,
            (node(), prop::sample::select(&[0, 0, 0, 1, 2][..]))
                .prop_map(|(node, requests_before)| Step::Fence { node, requests_before })
                .boxed(),
        ),
        (1, Just(Step::Joins).boxed()),
        (1, Just(Step::Leaves).boxed()),
    ];
    if everything {
        steps.push((3, (0_u32..1000).prop_map(Step::Early).boxed()));
        steps.push((5, prop::sample::select(&[0, 0, 0, 1][..]).prop_map(Step::Read).boxed()));
        steps.push((1, node().prop_map(Step::Through).boxed()));
        steps.push((1, Just(Step::BreakSensor).boxed()));
        steps.push((1, Just(Step::MendSensor).boxed()));
    }
    prop::strategy::Union::new_weighted(steps)
}

pub(super) fn any_settings() -> impl Strategy<Value = Settings> {
    (any::<bool>(), 100_u64..3000, 0_u64..2000, 0_u64..3000).prop_map(|(fence, quiet, floor, window)| {
        let bounds = Bounds { watch_lag: ms(500), sync_time: ms(400), min_sync: ms(200) };
        let load_balancer_window = ms(window);
        let routing = RoutingSettings { bounds, load_balancer_window, poll_timeout: ms(600), fence, ..routing() };
        let (quiet_period, min_wait, max_wait) = (ms(quiet), ms(floor), MAX_WAIT);
        Settings { routing: Some(routing), quiet_period, min_wait, max_wait, ..settings() }
    })
}

impl Drain {
    /// The hook has just been called, and the first lists have completed.
    pub(super) fn new(settings: Settings, answers_reads: bool) -> Self {
        let mut world = World::at_rest(settings);
        world.hook();
        world.cluster.silent = !answers_reads;
        let (fences, shown) = (Vec::new(), [Vec::new(), Vec::new()]);
        let last = (READY, Some(READY));
        let mut drain = Self {
            world,
            fences,
            shown,
            routed: START,
            last,
            undelivered: false,
            policy: TrafficPolicy::Cluster,
            connections: [1, 2],
            stamps: [0; 2],
            asked: 0,
        };
        drain.note_requests();
        drain
    }

    /// Takes every step, and lets the time pass until the drain is over.
    pub(super) fn play(mut self, steps: &[Step]) -> Self {
        for step in steps {
            self = self.play_one(*step);
        }
        let bound = self.world.now + MAX_WAIT;
        self.world.run(bound);
        self
    }

    pub(super) fn play_one(mut self, step: Step) -> Self {
        if self.world.answers.is_empty() {
            self.take(step);
            self.note_requests();
        }
        self
    }

    pub(super) fn outcome(&self) -> Outcome {
        let answered = self.world.answers.first().expect("S1: an answer by the bound");
        Outcome { lasted: answered.at.since(START), reason: answered.reason() }
    }

    /// The agent is killed, starts again, and its caller calls again.
    pub(super) fn restart(&mut self) {
        if !self.world.answers.is_empty() {
            return;
        }
        let now = self.world.now;
        self.world.core = Core::new(self.world.core.settings.clone(), now);
        self.world.truth.attempts.clear();
        self.world.truth.anywhere = 0;
        self.world.truth.mend_sensor(now);
        self.world.handle(Event::Clock);
        self.world.hook();
        self.connections = self.connections.map(|connection| connection + 10);
        self.fences.clear();
        self.note_requests();
    }

    fn note_requests(&mut self) {
        for (at, action) in self.world.asked.iter().skip(self.asked) {
            if let Action::AskFence(request) = action {
                self.fences.push((*request, START + ms(*at)));
            }
        }
        self.asked = self.world.asked.len();
    }

    fn take(&mut self, step: Step) {
        let world = &mut self.world;
        let now = world.now;
        match step {
            Step::Wait(millis) => {
                world.run(now + ms(millis));
            }
            Step::Jump(millis) => {
                world.now = now + ms(millis);
                world.handle(Event::Clock);
            }
            Step::Early(part) => {
                if let Some(due) = world.core.poll_timeout() {
                    let millis = u64::try_from(due.since(now).as_millis()).unwrap();
                    world.now = now + ms(millis * u64::from(part) / 1000);
                    world.core.handle(Event::Clock, world.now);
                    assert_eq!(world.core.poll(), None, "it was due at {due:?}");
                    assert_eq!(world.core.poll_timeout(), Some(due));
                }
            }
            Step::Syn => world.truth.connect(super::truth::port(80), Family::V4, now),
            Step::Slice(pod, peer, said) => self.slice(pod, peer, said),
            Step::Relist => {
                let slices: Vec<_> = world.cluster.slices.values().cloned().collect();
                if std::mem::take(&mut self.undelivered) {
                    self.routed = now;
                }
                self.world.say(ClusterEvent::SlicesListed(slices));
            }
            Step::Policy(policy) => {
                let service = world.cluster.service(policy);
                world.cluster.services.insert(service.name.clone(), service.clone());
                if std::mem::replace(&mut self.policy, policy) != policy {
                    self.routed = now;
                }
                self.world.say(ClusterEvent::ServiceWritten(service));
            }
            Step::Health { node, sync, sent_before } => self.health(node, sync, sent_before),
            Step::Silent { node, how } => {
                let outcomes = [
                    HealthOutcome::TimedOut,
                    HealthOutcome::Refused,
                    HealthOutcome::Broken,
                    HealthOutcome::NoStatus("a web server".to_owned()),
                ];
                self.report(node, 0, outcomes[how].clone());
                self.connections[node] += u64::from(how == 1 || how == 2) * 10;
            }
            Step::Fence { node, requests_before } => self.fence(node, requests_before),
            Step::Read(how) => {
                let outcomes = [None, Some(ReadOutcome::Failed("503".to_owned()))];
                world.cluster.reads = outcomes.get(how).cloned().flatten();
                if world.asked.iter().any(|(_, action)| matches!(action, Action::ReadConsistently(_))) {
                    let read = world.last_read();
                    world.answer_read(read);
                }
            }
            Step::Joins => {
                world.cluster.nodes = NODES.into_iter().chain(["new"]).map(node).collect();
                world.say(ClusterEvent::NodeAdded(node("new")));
            }
            Step::Leaves => {
                world.cluster.nodes = NODES.into_iter().map(node).collect();
                world.say(ClusterEvent::NodeRemoved(node("new").name));
            }
            Step::Through(node) => {
                self.shown[node].clear();
                let node = NodeName(NODES[node].to_owned());
                self.world.say(ClusterEvent::AttemptThrough { node, family: Family::V4, at: now });
            }
            Step::BreakSensor => world.truth.break_sensor("gone"),
            Step::MendSensor => world.truth.mend_sensor(now),
        }
    }

    fn slice(&mut self, pod: Conditions, peer: Option<Conditions>, said: bool) {
        let endpoints: Vec<_> = [(1, pod)].into_iter().chain(peer.map(|peer| (2, peer))).collect();
        // What a node holds may be the version before or this one: neither routes to the pod if in both it is not ready,
        // and does not serve or has a peer that is.
        let (pod_before, peer_before) = self.last;
        if said {
            self.last = (pod, peer);
        }
        let ready = pod_before[0] || pod[0];
        let fallback = (pod_before[1] || pod[1]) && !(peer_before == Some(READY) && peer == Some(READY));
        self.undelivered = !said;
        if said && (ready || fallback) {
            self.routed = self.world.now;
        }
        let slice = self.world.write_slice(&endpoints);
        if said {
            self.world.say(ClusterEvent::SliceWritten(slice));
        }
    }

    fn health(&mut self, node: usize, sync: bool, sent_before: u64) {
        self.stamps[node] += i128::from(sync);
        let health = FamilyHealth { last_updated: NodeTime(self.stamps[node]), healthy: true };
        self.report(node, sent_before, HealthOutcome::Status(HealthStatus { v4: Some(health), v6: None }));
    }

    fn report(&mut self, node: usize, sent_before: u64, outcome: HealthOutcome) {
        let now = self.world.now;
        self.world.say(ClusterEvent::Health(HealthReport {
            node: NodeName(NODES[node].to_owned()),
            connection: ConnectionId(self.connections[node]),
            sent_at: now - ms(sent_before),
            received_at: now,
            outcome,
        }));
    }

    fn fence(&mut self, node: usize, requests_before: usize) {
        let Some((request, _)) = self.fences.iter().rev().nth(requests_before).copied() else { return };
        self.shown[node].push(request);
        let now = self.world.now;
        self.world.say(ClusterEvent::Fence(FenceProgress {
            request,
            node: NodeName(NODES[node].to_owned()),
            family: Family::V4,
            stood_at: now,
            received_at: now,
        }));
    }
}
