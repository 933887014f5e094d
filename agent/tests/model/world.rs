//! Everything together, as a model that can be searched.

use stateright::{Model, Property};

use crate::{
    agent::{Agent, Judge},
    api::{Log, Value, Write},
    fence::{self, Fence},
    kube_proxy::{KubeProxy, Rules, Step},
    setting::{Limits, Setting},
};

/// The world at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) now: u8,
    pub(crate) log: Log,
    pub(crate) proxy: KubeProxy,
    pub(crate) rules: Rules,
    /// `None` from the verdict on: it has no further part, and the API stands still.
    pub(crate) agent: Option<Agent>,
    /// What of the limits is left.
    left: Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    unrelated: u8,
    restarts: u8,
    failures: u8,
    relists: u8,
    agent_relists: u8,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A tick of every clock.
    Tick,
    /// A slice of the pod's Service is written.
    Write(Value),
    /// Another drain's fence writes the marker object.
    OtherMarker,
    /// kube-proxy does something.
    Proxy(Step),
    /// The agent's watch delivers a write.
    AgentSees,
    /// The agent's watch is lost, and a list of this version replaces it.
    AgentLists(usize),
    /// The agent sends a health request.
    Send,
    /// It is answered.
    Answer,
    /// The agent sends a health request and is answered at once.
    Poll,
    /// The agent asks the fence.
    AskFence,
    /// The fence writes a marker: the first, or another as it sees the one before take effect.
    FenceWrites,
    /// The fence sees the last one take effect, and tells the agent.
    FenceTells,
    /// The agent ends.
    Verdict,
}

/// Of the rules, from the verdict on.
pub(crate) const SOUND: &str = "rules never route to the pod after the verdict";
/// A rule that never confirms would be sound.
pub(crate) const CONFIRMS: &str = "there are verdicts";

impl Model for Setting {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let Limits { unrelated, restarts, failures, relists, agent_relists, .. } = self.limits;
        vec![World {
            now: 0,
            log: Log::default(),
            proxy: KubeProxy::new(self.queue),
            rules: Rules { route: true, marker: 0 },
            agent: Some(Agent::new(self)),
            left: Left { unrelated, restarts, failures, relists, agent_relists },
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if let Some(agent) = &world.agent {
            if !world.can_be_withdrawn(self) && !self.ends_unaware() {
                return;
            }
            world.agents_actions(agent, self, actions);
            world.writes(self, actions);
        }
        let mut steps = Vec::new();
        world.proxy.steps(&world.log, self, world.now, &mut steps);
        actions.extend(steps.into_iter().filter(|step| world.left.allow(*step)).map(Action::Proxy));
        // Before the first write there is nothing to tell: what was under way then can have begun at the same tick.
        let begun = world.log.of_the_service() > 0;
        if begun && world.now < self.limits.ticks && world.proxy.lets_pass(&world.log, self, world.now + 1) {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.take(action, self);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SOUND, |_, world: &World| world.agent.is_some() || !world.rules.route),
            Property::sometimes(CONFIRMS, |_, world: &World| world.agent.is_none()),
        ]
    }
}

impl World {
    fn agents_actions(&self, agent: &Agent, setting: &Setting, actions: &mut Vec<Action>) {
        actions.extend(agent.watch.has_more(&self.log).then_some(Action::AgentSees));
        if self.left.agent_relists > 0 {
            actions.extend(agent.watch.lists(&self.log).map(Action::AgentLists));
        }
        let polls = setting.early_polls || agent.answers_count(setting, self.now);
        actions.extend(polls.then_some(match (setting.round_trip, agent.request) {
            (true, None) => Action::Send,
            (true, Some(_)) => Action::Answer,
            (false, _) => Action::Poll,
        }));
        let withdrawn = agent.watch.is_withdrawn();
        if let Judge::Core(core) = &agent.judge
            && setting.markers() > 0
        {
            actions.extend(Fence::is_due(core, self.now).then_some(Action::AskFence));
            actions.extend(agent.fence.can_write(setting, &self.proxy, self.rules).then_some(Action::FenceWrites));
            actions.extend(agent.fence.can_tell(setting, &self.proxy, self.rules).then_some(Action::FenceTells));
        }
        let read = !setting.consistent_read || !agent.watch.has_more(&self.log);
        actions.extend((withdrawn && read && agent.is_satisfied(setting.rule)).then_some(Action::Verdict));
    }

    /// Whether there can be a verdict yet.
    fn can_be_withdrawn(&self, setting: &Setting) -> bool {
        !self.routes(setting) || (self.has_writes_left(setting) && self.is_in_time(setting))
    }

    /// Whether the newest versions route to the pod.
    fn routes(&self, setting: &Setting) -> bool {
        setting.service.routes(&setting.service.at(&self.log, self.log.len()))
    }

    fn has_writes_left(&self, setting: &Setting) -> bool {
        self.log.of_the_service() < usize::from(setting.limits.writes)
    }

    /// Whether a relevant change of now leaves time enough for a verdict.
    fn is_in_time(&self, setting: &Setting) -> bool {
        self.now + setting.shortest_wait() <= setting.limits.ticks
    }

    fn writes(&self, setting: &Setting, actions: &mut Vec<Action>) {
        // While the pod is routed the next write is relevant, and one that comes too late for a verdict shows nothing.
        let may_show = !self.routes(setting) || self.is_in_time(setting) || setting.ends_unaware();
        if may_show && self.has_writes_left(setting) {
            actions.extend(setting.service.next(&self.log).into_iter().map(Action::Write));
        }
        let first = fence::next_marker(&self.log) == 1;
        actions.extend((setting.marker_reused && first).then_some(Action::OtherMarker));
    }

    fn take(&mut self, action: Action, setting: &Setting) {
        let now = self.now;
        match action {
            Action::Tick => self.now += 1,
            Action::Write(value) => self.log.0.push(Write { value, tick: now }),
            Action::OtherMarker => {
                let marker = fence::next_marker(&self.log);
                self.log.0.push(Write { value: Value::Marker(marker), tick: now });
            }
            Action::Proxy(step) => {
                self.left.take(step);
                self.proxy.step(step, &self.log, &mut self.rules, setting, now);
            }
            Action::Verdict => self.agent = None,
            _ => self.agent_does(action, setting),
        }
        match &mut self.agent {
            Some(agent) if !setting.agent_late => agent.see(&self.log, setting, now),
            Some(_) => {}
            None => self.proxy.is_no_longer_asked(),
        }
    }

    fn agent_does(&mut self, action: Action, setting: &Setting) {
        let Some(agent) = &mut self.agent else { return };
        let now = self.now;
        match (action, &mut agent.judge) {
            (Action::AgentSees, _) => agent.see(&self.log, setting, now),
            (Action::AgentLists(version), _) => {
                self.left.agent_relists -= 1;
                agent.list(version, &self.log, setting, now);
            }
            (Action::Send, _) => agent.request = Some((now, self.proxy.process)),
            (Action::Answer, _) => {
                if let Some((sent, process)) = agent.request.take() {
                    agent.answer(sent, process, &self.proxy, setting, now);
                }
            }
            (Action::Poll, _) => agent.answer(now, self.proxy.process, &self.proxy, setting, now),
            (Action::AskFence, Judge::Core(core)) => agent.fence.ask(core, now),
            (Action::FenceWrites, _) => agent.fence.write(&mut self.log, &self.proxy, now),
            (Action::FenceTells, Judge::Core(core)) => agent.fence.tell(core, now),
            _ => {}
        }
    }
}

impl Left {
    fn of(&mut self, step: Step) -> Option<&mut u8> {
        match step {
            Step::Unrelated => Some(&mut self.unrelated),
            Step::Die { .. } => Some(&mut self.restarts),
            Step::FailSync => Some(&mut self.failures),
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
