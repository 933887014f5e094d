//! The API, the node, the drains, and the fence, as a model that can be searched.

use std::{collections::BTreeMap, time::Duration};

use lastsyn::{
    core::{
        clock::Monotonic,
        cluster::{ConnectionId, Node as ApiNode, NodeName},
        confirm::OperatingSystem,
        listener::Family,
    },
    fence::{
        generation::Generation,
        rounds::{CallId, Pace, Rounds, State, WriteId},
    },
};
use stateright::{Model, Property};

use super::{
    Case, Judge,
    node::{Log, MARKER, Node, Step, Write},
};

const TICK: Duration = Duration::from_secs(1);
/// `firstList`, in ticks.
const FIRST_LIST: u8 = 2;
const FAMILY: Family = Family::V4;

pub(crate) const SOUND: &str = "the rules always have what was confirmed";
pub(crate) const CONFIRMS: &str = "a drain is told";
pub(crate) const BOTH: &str = "all drains are told";

/// The world at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) log: Log,
    pub(crate) node: Node,
    pub(crate) drains: [Drain; 2],
    fence: Rounds,
    /// Which writer it is.
    pub(crate) leader: u8,
    /// The process that the fence has its connection with.
    connected: Option<u8>,
    under_way: Option<UnderWay>,
    /// A write of the writer before: it may still arrive.
    orphan: Option<UnderWay>,
    /// The writes that have begun, that the API server has acknowledged, and that the node has shown, the newest of each: for
    /// the judge that asks for one marker. Otherwise nothing, so that states that differ in nothing else are one.
    newest: Newest,
    left: Left,
}

/// One drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Drain {
    /// Where its withdrawal is in the log.
    pub(crate) withdrawn: Option<u8>,
    asked: bool,
    /// The last write that had begun when it asked.
    after: u64,
    pub(crate) told: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Newest {
    begun: u64,
    acknowledged: u64,
    shown: u64,
}

/// A write of the fence on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UnderWay {
    id: WriteId,
    endpoints: u8,
    /// The version that it replaces.
    replaces: u8,
    /// Whether the API server has taken it; `None` before it arrives.
    taken: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    markers: u8,
    restarts: u8,
    relists: u8,
    lost: u8,
    leaders: u8,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Tick,
    Withdraw(usize),
    Ask(usize),
    Begin,
    Arrives,
    OrphanArrives,
    Acknowledged,
    Lost,
    TakesOver,
    Look,
    Tell(usize),
    Node(Step),
}

impl Model for Case {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let limits = self.limits;
        let mut fence = fence();
        load(&mut fence, &Log::default(), 0);
        vec![World {
            now: 0,
            log: Log::default(),
            node: Node::new(),
            drains: [Drain::default(); 2],
            fence,
            leader: 1,
            connected: None,
            under_way: None,
            orphan: None,
            newest: Newest::default(),
            left: Left {
                markers: limits.markers,
                restarts: limits.restarts,
                relists: limits.relists,
                lost: limits.lost,
                leaders: limits.leaders,
            },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, drain) in world.drains.iter().enumerate().take(usize::from(self.limits.drains)) {
            // They are alike: the first withdraws first.
            let turn = number == 0 || world.drains[number - 1].withdrawn.is_some();
            actions.extend((drain.withdrawn.is_none() && turn).then_some(Action::Withdraw(number)));
            actions.extend((drain.withdrawn.is_some() && !drain.asked).then_some(Action::Ask(number)));
            actions.extend((!drain.told && world.is_confirmed(number, self.judge)).then_some(Action::Tell(number)));
        }
        let mut steps = Vec::new();
        world.node.steps(&world.log, FIRST_LIST, &mut steps);
        actions.extend(steps.into_iter().filter(|step| world.left.allow(*step)).map(Action::Node));
        if world.is_over(*self) {
            return;
        }
        match world.under_way {
            None if world.left.markers > 0 => {
                let due = world.fence.write_due(FAMILY, at(world.now)).is_some_and(|due| due <= at(world.now));
                actions.extend(due.then_some(Action::Begin));
            }
            None => {}
            Some(UnderWay { taken: None, .. }) => actions.push(Action::Arrives),
            Some(_) => {
                actions.push(Action::Acknowledged);
                actions.extend((world.left.lost > 0).then_some(Action::Lost));
            }
        }
        actions.extend(world.orphan.is_some().then_some(Action::OrphanArrives));
        actions.extend((world.left.leaders > 0).then_some(Action::TakesOver));
        actions.push(Action::Look);
        actions.extend((world.now < self.limits.ticks).then_some(Action::Tick));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(action);
        if self.judge != Judge::OneMarker {
            next.newest = Newest::default();
            next.drains.iter_mut().for_each(|drain| drain.after = 0);
        }
        if next.is_over(*self) {
            next.end_the_fence();
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SOUND, |_, world: &World| {
                let has = |(number, drain): (usize, &Drain)| {
                    !drain.told || drain.withdrawn.is_some_and(|at| world.node.rules[number] >= at)
                };
                world.drains.iter().enumerate().all(has)
            }),
            Property::sometimes(CONFIRMS, |_, world: &World| world.drains.iter().any(|drain| drain.told)),
            Property::sometimes(BOTH, |case: &Case, world: &World| {
                world.drains.iter().take(usize::from(case.limits.drains)).all(|drain| drain.told)
            }),
        ]
    }
}

impl World {
    /// All drains have been told: what matters from now on is the rules alone.
    fn is_over(&self, case: Case) -> bool {
        self.drains.iter().take(usize::from(case.limits.drains)).all(|drain| drain.told)
    }

    fn end_the_fence(&mut self) {
        (self.fence, self.connected, self.under_way, self.orphan) = (fence(), None, None, None);
        (self.leader, self.newest, self.node.port) = (1, Newest::default(), 0);
        (self.left.markers, self.left.lost, self.left.leaders) = (0, 0, 0);
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Tick => self.now += 1,
            Action::Withdraw(drain) => {
                self.log.0.push(Write { object: drain, endpoints: 0, tick: self.now });
                self.drains[drain].withdrawn = Some(self.log.len());
            }
            Action::Ask(drain) => self.ask(drain),
            Action::Begin => self.begin(),
            Action::Arrives => {
                if let Some(mut write) = self.under_way.take() {
                    self.arrives(&mut write);
                    self.under_way = Some(write);
                }
            }
            Action::OrphanArrives => {
                if let Some(mut write) = self.orphan.take() {
                    self.arrives(&mut write);
                }
            }
            Action::Acknowledged => {
                let Some(write) = self.under_way.take() else { return };
                if write.taken == Some(true) {
                    self.newest.acknowledged = write.id.0;
                    self.fence.written(FAMILY, write.id, at(self.now));
                } else {
                    self.lost(write.id);
                }
            }
            Action::Lost => {
                self.left.lost -= 1;
                if let Some(write) = self.under_way.take() {
                    self.lost(write.id);
                }
            }
            Action::TakesOver => self.takes_over(),
            Action::Look => self.look(),
            Action::Tell(drain) => self.drains[drain].told = true,
            Action::Node(step) => {
                self.left.take(step);
                self.node.step(step, &self.log, self.now);
            }
        }
    }

    fn ask(&mut self, drain: usize) {
        let call = call(drain);
        self.fence.ask(call, &[FAMILY], TICK * u32::from(FIRST_LIST), at(self.now));
        self.drains[drain].asked = true;
        self.drains[drain].after = self.newest.begun;
    }

    fn begin(&mut self) {
        let Some(write) = self.fence.begin_write(FAMILY, at(self.now)) else { return };
        self.left.markers -= 1;
        self.newest.begun = write.id.0;
        let endpoints = write.values.get(&name()).map_or(0, |value| value.endpoints());
        let replaces = self.log.view(self.log.len())[MARKER];
        self.under_way = Some(UnderWay { id: write.id, endpoints, replaces, taken: None });
    }

    /// The API server takes a write that replaces the version it has, and no other.
    fn arrives(&mut self, write: &mut UnderWay) {
        let newest = self.log.view(self.log.len())[MARKER];
        write.taken = Some(write.replaces == newest);
        if write.replaces == newest {
            self.log.0.push(Write { object: MARKER, endpoints: write.endpoints, tick: self.now });
        }
    }

    fn lost(&mut self, write: WriteId) {
        self.fence.write_lost(FAMILY, write);
        load(&mut self.fence, &self.log, self.now);
    }

    /// Another writer, with connections of its own; agents ask it anew.
    fn takes_over(&mut self) {
        self.left.leaders -= 1;
        self.leader += 1;
        self.orphan = self.under_way.take().filter(|write| write.taken.is_none());
        self.fence = fence();
        self.fence.hold(at(self.now));
        load(&mut self.fence, &self.log, self.now);
        self.connected = None;
        self.newest = Newest::default();
        for drain in &mut self.drains {
            drain.asked = false;
            drain.after = 0;
        }
    }

    /// The fence asks the node's port, over the connection that it has or a new one, and is answered at once.
    fn look(&mut self) {
        if !self.node.up {
            if let Some(process) = self.connected.take() {
                self.fence.closed(&name(), FAMILY, connection(self.leader, process));
                self.newest.shown = 0;
            }
            return;
        }
        let connection = connection(self.leader, self.node.process);
        if self.connected != Some(self.node.process) {
            self.fence.opened(&name(), FAMILY, connection);
            self.connected = Some(self.node.process);
            self.newest.shown = 0;
        }
        let (now, endpoints) = (at(self.now), self.node.port.into());
        if self.fence.answered(&name(), FAMILY, connection, now, endpoints, now).is_some() {
            // There is one at a time, and none shows before it is acknowledged.
            self.newest.shown = self.newest.acknowledged;
        }
    }

    fn is_confirmed(&self, drain: usize, judge: Judge) -> bool {
        let told = |call: CallId| {
            let mut states = self.fence.states(call);
            states.any(|(_, _, state)| matches!(state, State::Confirmed { .. }))
        };
        match judge {
            Judge::Rounds => told(call(drain)),
            Judge::OneMarker => {
                let Drain { withdrawn, asked, after, .. } = self.drains[drain];
                let old = |at: u8| self.log.0[usize::from(at) - 1].tick + FIRST_LIST <= self.now;
                asked
                    && withdrawn.is_some_and(old)
                    && self.connected == Some(self.node.process)
                    && self.newest.shown > after
            }
            Judge::TheFirstAnswer => self.drains[drain].asked && told(call(0)),
        }
    }
}

fn fence() -> Rounds {
    let mut fence = Rounds::new(Pace { spacing: TICK, gather: Duration::ZERO });
    fence.nodes(&[ApiNode { name: name(), system: OperatingSystem::Linux }], at(0));
    fence
}

/// What the API has of the node.
fn load(fence: &mut Rounds, log: &Log, now: u8) {
    let endpoints = log.endpoints(log.view(log.len()));
    let value = Generation::of(endpoints.into()).unwrap_or(Generation::FIRST);
    fence.loaded(FAMILY, &BTreeMap::from([(name(), value)]), at(now));
}

fn at(tick: u8) -> Monotonic {
    Monotonic::default() + TICK * u32::from(tick)
}

fn name() -> NodeName {
    NodeName("a".to_owned())
}

fn call(drain: usize) -> CallId {
    CallId(drain as u64)
}

fn connection(leader: u8, process: u8) -> ConnectionId {
    ConnectionId(u64::from(leader) * 100 + u64::from(process))
}

impl Left {
    fn of(&mut self, step: Step) -> Option<&mut u8> {
        match step {
            Step::Die => Some(&mut self.restarts),
            Step::Relist(_) => Some(&mut self.relists),
            _ => None,
        }
    }

    fn allow(mut self, step: Step) -> bool {
        self.of(step).is_none_or(|left| *left > 0)
    }

    fn take(&mut self, step: Step) {
        if let Some(left) = self.of(step) {
            *left = left.saturating_sub(1);
        }
    }
}
