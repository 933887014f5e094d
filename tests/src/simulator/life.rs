//! The agent's life in the world: it starts, reads, wakes, stands still, dies; and the steps of the plan.

use std::time::Duration;

use lastsyn::core::event::{CallerId, Depth, Event as CoreEvent, Evidence};

use super::{
    agent::Agent,
    check::Failure,
    kube_proxy::KubeProxy,
    observer::Observer,
    plan::What,
    schedule::{Event, ObserverEvent},
    world::World,
};

impl World<'_> {
    /// An agent starts; where the hook waits, it calls at once.
    pub(super) fn start_agent(&mut self) {
        if self.observer.life > 0 {
            let (life, nodes, next) = (self.observer.life, self.proxies.len(), self.observer.next_connection);
            self.observer = Observer::new(self.plan.seed, life, self.plan.agent, nodes, next);
            self.pod.sensor_anew(self.now);
            self.timeline.note(self.now, || "agent: another one starts".to_owned());
        }
        self.agent = Some(Agent::new(self.plan, self.now));
        self.handle(CoreEvent::Clock);
        if self.now >= self.hook {
            self.call_first();
        }
    }

    /// The hook is called.
    pub(super) fn call_first(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.called_at = Some(self.now);
            self.pod.drain_starts();
            self.timeline.note(self.now, || "the hook is called".to_owned());
            self.call(0);
        }
    }

    /// The core's clock is due.
    pub(super) fn wake(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if self.now < agent.stands_until {
            agent.wakes_at = Some(agent.stands_until);
            return;
        }
        agent.wakes_at = None;
        let due = agent.due.take();
        self.handle(CoreEvent::Clock);
        if let Some(agent) = &mut self.agent {
            agent.spins = if agent.due.is_some() && agent.due == due { agent.spins + 1 } else { 0 };
            if agent.spins > 3 {
                self.failure = Some(Failure::new("the core is due again and again, with nothing done"));
            }
        }
    }

    /// When the loop wakes next: a little later than the core asks for.
    pub(super) fn plan_wake(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        let due = agent.core.poll_timeout();
        if due != agent.due || agent.wakes_at.is_none() {
            let late = self.lateness.below(self.plan.agent.lateness);
            agent.wakes_at = due.map(|due| due.max(self.now) + late);
            agent.due = due;
        }
    }

    fn called(&self) -> bool {
        self.agent.as_ref().is_some_and(|agent| agent.called_at.is_some())
    }

    /// A reading is asked for.
    pub(super) fn read(&mut self, depth: Depth) {
        let evidence = self.pod.evidence(depth, self.now);
        let takes = self.lateness.below(self.plan.agent.reading);
        if takes.is_zero() {
            self.evidence(evidence);
        } else if let Some(agent) = &mut self.agent {
            agent.readings.push_back(evidence);
            let event = Event::Observer(self.observer.life, ObserverEvent::Evidence);
            self.schedule.add(self.now + takes, event);
        }
    }

    /// A reading is done.
    pub(super) fn evidence(&mut self, evidence: Evidence) {
        if let Some(agent) = &mut self.agent {
            agent.read_at = agent.read_at.max(evidence.taken_at);
            self.handle(CoreEvent::Evidence(Box::new(evidence)));
        }
    }

    /// A step of the plan.
    pub(super) fn step(&mut self, what: What) {
        self.timeline.note(self.now, || format!("*** {what}"));
        match what {
            What::Pod(pod, condition) => {
                let planned = self.controller.pod(pod, condition);
                self.plan_writes(planned);
            }
            What::Move(pod, from, to) => {
                let planned = self.controller.relocate(pod, Some(from), to);
                self.plan_writes(planned);
            }
            What::Copy(pod, to) => {
                let planned = self.controller.relocate(pod, None, to);
                self.plan_writes(planned);
            }
            What::Neglect(slice, later) => self.controller.neglect(slice, later),
            What::Policy(service, policy) => self.write_service(service, policy),
            What::FenceAway(length) => self.fence.goes_away(self.now + length),
            What::NodeJoins(node) => {
                self.write_node(node, true);
                let start = self.lateness.ms(100, 2500);
                self.schedule.add(self.now + start, Event::StartProxy(node));
            }
            What::NodeLeaves(node) => {
                self.write_node(node, false);
                self.proxies[node.0].leave();
            }
            What::Freeze(node, length) => self.on_node(node, |proxy, scene| proxy.freeze(length, scene)),
            What::Kill(node, down, written) => self.on_node(node, |proxy, scene| proxy.die(down, written, scene)),
            What::Cut(node, length, relists) => self.on_node(node, |proxy, scene| proxy.cut(length, relists, scene)),
            What::FailSyncs(node, syncs) => self.proxies[node.0].fail(syncs),
            What::StepClock(node, nanos) => {
                self.on_node(node, |proxy, scene| KubeProxy::step_clock(proxy, nanos.into(), scene));
            }
            agents => self.step_of_agent(agents),
        }
    }

    fn step_of_agent(&mut self, what: What) {
        if self.ended.is_some() {
            return;
        }
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = super::kube_proxy::Scene { now: self.now, api, schedule, timeline };
        match what {
            What::BreakConnection(node) => {
                if let Some(event) = self.observer.break_connection(node, &mut scene) {
                    self.tell(event);
                }
            }
            What::AgentGap(length, relists) => self.observer.gap(length, relists, &mut scene),
            What::AgentStands(length) => {
                if let Some(agent) = &mut self.agent {
                    agent.stands_until = self.now + length;
                    agent.lateness += length;
                }
            }
            What::AgentRestarts(down) => {
                self.agent = None;
                self.observer.life += 1;
                self.schedule.add(self.now + down, Event::StartAgent);
            }
            What::SensorGap(length, noticed) => self.sensor_gap(length, noticed),
            What::Overflow(length) => self.pod.overflow(self.now + length),
            What::Burst(clients) => {
                for _ in 0..clients {
                    self.client();
                }
            }
            What::CallerJoins if self.called() => self.call(1),
            What::CallersLeave => self.handle(CoreEvent::HookLeft { caller: CallerId(1) }),
            What::Terminate if self.called() => self.handle(CoreEvent::Terminate),
            _ => {}
        }
    }

    fn sensor_gap(&mut self, length: Duration, noticed: bool) {
        self.pod.break_sensor(noticed);
        self.schedule.add(self.now + length, Event::MendSensor);
    }

    fn plan_writes(&mut self, planned: Vec<(super::api::ObjectId, Duration)>) {
        for (slice, later) in planned {
            self.schedule.add(self.now + later, Event::WriteSlice(slice));
        }
    }

    /// The load balancer's ports are asked where some Service has, or will have, one.
    pub(super) fn follow_local_endpoints(&mut self) {
        let with_port = |service: &usize| self.plan.services[*service].health_check_node_port.is_some();
        let services: Vec<usize> = (0..self.plan.services.len()).filter(with_port).take(1).collect();
        for service in services {
            let soon = self.observer.latency();
            let event = Event::Observer(self.observer.life, ObserverEvent::PollLocal(service));
            self.schedule.add(self.now + soon, event);
        }
    }
}
