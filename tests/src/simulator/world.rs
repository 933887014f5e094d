//! Everything together, and the order in which it happens.

use std::{sync::Arc, time::Duration};

use lastsyn::core::{clock::Monotonic, cluster::ClusterEvent, listener::Family, verdict::Verdict};

use super::{
    agent::Agent,
    api::{Api, Content, NodeWrite, ObjectId, Policy, ServiceWrite},
    balancer::Balancer,
    chance::{Chance, Stream},
    check::{self, Failure},
    clients::Clients,
    controller::Controller,
    fence::{self, Fence},
    kube_proxy::{KubeProxy, ProxyEvent, Rules, Scene},
    naive::Naive,
    node::NodeId,
    observer::Observer,
    plan::Plan,
    pod::Pod,
    schedule::{Event, FenceEvent, ObserverEvent, Schedule},
    timeline::Timeline,
};

/// When every world begins: long after the machines' start.
const BEGINNING: Monotonic = Monotonic::from_nanos(1_000_000_000_000);
/// When the hook is called, after that.
pub(super) const HOOK: Duration = Duration::from_secs(1);
/// For how long a claim is held against what the nodes do afterwards. Everything that was on its way has come by then.
const AFTERWARDS: Duration = Duration::from_secs(10);
/// More events than any drain makes.
const MANY: u32 = 2_000_000;

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The product's core.
    Core,
    /// A stamp newer than the change.
    NewerStamp,
}

/// How a drain ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) at: Monotonic,
    /// `None`: the caller's own bound, without an agent; or the naive rule's claim.
    pub(super) verdict: Option<Arc<Verdict>>,
}

/// One world, with one drain.
pub(super) struct World<'a> {
    pub(super) plan: &'a Plan,
    pub(super) now: Monotonic,
    pub(super) schedule: Schedule,
    pub(super) timeline: Timeline,
    pub(super) api: Api,
    pub(super) controller: Controller,
    pub(super) proxies: Vec<KubeProxy>,
    pub(super) fence: Fence,
    pub(super) pod: Pod,
    pub(super) clients: Clients,
    pub(super) balancer: Option<Balancer>,
    pub(super) observer: Observer,
    pub(super) agent: Option<Agent>,
    pub(super) naive: Option<Naive>,
    pub(super) hook: Monotonic,
    pub(super) ended: Option<Ended>,
    pub(super) failure: Option<Failure>,
    pub(super) lateness: Chance,
}

impl<'a> World<'a> {
    pub(super) fn new(plan: &'a Plan, rule: Rule, tell: bool) -> Self {
        let now = BEGINNING;
        let mut api = Api::default();
        let mut controller = Controller::new(plan);
        let before = now - Duration::from_mins(1);
        for (service, policy) in plan.services.iter().enumerate() {
            api.services.push(ServiceWrite { at: before, service, policy: *policy });
        }
        for slice in controller.slices() {
            let content = controller.write(slice);
            api.write_slice(before, slice, content);
        }
        for (node, profile) in plan.nodes.iter().enumerate() {
            if profile.there {
                api.nodes.push(NodeWrite { at: before, node: NodeId(node), there: true });
            }
        }
        let proxies: Vec<_> = plan
            .nodes
            .iter()
            .enumerate()
            .map(|(node, profile)| KubeProxy::new(NodeId(node), *profile, plan.families, plan.seed, &api, now))
            .collect();
        Self {
            plan,
            now,
            schedule: Schedule::default(),
            timeline: Timeline::new(tell),
            api,
            controller,
            fence: Fence::new(plan.seed, proxies.len(), plan.families),
            pod: Pod::new(plan.seed, plan.families, plan.traffic, now),
            clients: Clients::new(plan.seed),
            balancer: plan.balancer.map(|period| Balancer::new(plan.seed, period)),
            observer: Observer::new(plan.seed, 0, plan.agent, proxies.len(), 0),
            proxies,
            agent: None,
            naive: (rule == Rule::NewerStamp).then(|| Naive::new(plan.families)),
            hook: now + HOOK,
            ended: None,
            failure: None,
            lateness: Chance::of(plan.seed.wrapping_add(1 << 40), Stream::Pod),
        }
    }

    /// Plays it to its end, and for a while after.
    pub(super) fn play(&mut self) {
        for (number, step) in self.plan.steps.iter().enumerate() {
            self.schedule.add(BEGINNING + step.at, Event::Step(number));
        }
        self.start_clients();
        for node in 0..self.proxies.len() {
            self.on_node(NodeId(node), KubeProxy::plan_unrelated);
        }
        self.start_agent();
        self.schedule.add(self.hook, Event::Hook);
        let hold = self.hook + self.plan.agent.max_wait + check::CALLERS_PATIENCE;
        for _ in 0..MANY {
            let (wake, event) = (self.agent.as_ref().and_then(|agent| agent.wakes_at), self.schedule.next());
            let Some(next) = wake.into_iter().chain(event).min() else { break };
            let until = self.ended.as_ref().map_or(hold, |ended| ended.at + AFTERWARDS);
            if next > until {
                if self.ended.is_some() {
                    break;
                }
                self.now = hold;
                self.end(None);
                continue;
            }
            self.now = next;
            if wake == Some(next) {
                self.wake();
            } else if let Some((_, event)) = self.schedule.take() {
                self.happen(event);
            }
            if self.failure.is_some() || (self.ended.is_some() && !self.is_claim()) {
                break;
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(number) => self.step(self.plan.steps[number].what),
            Event::WriteSlice(slice) => {
                let content = self.controller.write(slice);
                self.write_slice(slice, content);
            }
            Event::Proxy(node, process, event) => {
                self.on_node(node, |proxy, scene| proxy.take(process, event, scene));
                self.check_claim(event);
            }
            Event::StartProxy(node) => self.on_node(node, KubeProxy::start),
            Event::Observer(life, event) if life == self.observer.life && self.ended.is_none() => self.observe(event),
            Event::Fence(event) if self.ended.is_none() => self.fence_does(event),
            Event::Pod(event) => self.pod_does(event),
            Event::Hook => self.call_first(),
            Event::MendSensor => self.pod.mend_sensor(self.now),
            Event::StartAgent if self.ended.is_none() => self.start_agent(),
            // What the agent or the fence would do after the end, or one that is dead.
            Event::Observer(..) | Event::Fence(_) | Event::StartAgent => {}
            Event::Balancer => self.balance(),
        }
    }

    fn fence_does(&mut self, event: FenceEvent) {
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        match event {
            FenceEvent::Asked(request) => self.fence.asked(request, &mut scene),
            FenceEvent::Look => self.fence.look(&self.proxies, &mut scene),
            FenceEvent::Write => {
                for (family, value) in self.fence.writes() {
                    self.write_slice(fence::marker(family), Content::Marker(family, value));
                }
            }
        }
    }

    fn observe(&mut self, event: ObserverEvent) {
        if let Some(agent) = &self.agent
            && self.now < agent.stands_until
        {
            self.schedule.add(agent.stands_until, Event::Observer(self.observer.life, event));
            return;
        }
        if matches!(event, ObserverEvent::Evidence) {
            let evidence = self.agent.as_mut().and_then(|agent| agent.readings.pop_front());
            if let Some(evidence) = evidence {
                self.evidence(evidence);
            }
            return;
        }
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        let observer = &mut self.observer;
        let told: Vec<ClusterEvent> = match event {
            ObserverEvent::ReadTaken(id) => {
                observer.read_taken(id, &mut scene);
                return;
            }
            ObserverEvent::ReadAnswered(id) => observer.read_answered(id, &mut scene).into_iter().collect(),
            ObserverEvent::Poll(node) => observer.poll(node, &self.proxies[node.0], &mut scene).into_iter().collect(),
            ObserverEvent::PollAnswered(node) => observer.poll_answered(node, &mut scene).into_iter().collect(),
            ObserverEvent::PollLocal(service) => vec![observer.poll_local(service, &self.proxies[0], &mut scene)],
            ObserverEvent::PollFence => observer.poll_fence(&self.fence, &self.proxies, &mut scene),
            watched => observer.watched(watched, &mut scene),
        };
        for event in told {
            self.tell(event);
        }
    }

    pub(super) fn on_node(&mut self, node: NodeId, act: impl FnOnce(&mut KubeProxy, &mut Scene<'_>)) {
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        act(&mut self.proxies[node.0], &mut Scene { now: self.now, api, schedule, timeline });
    }

    /// A slice is written, and every watch will deliver it.
    pub(super) fn write_slice(&mut self, slice: ObjectId, content: Content) {
        let is_marker = matches!(content, Content::Marker(..));
        self.timeline.note(self.now, || format!("API: {}", super::words::content(slice, &content)));
        if !self.api.write_slice(self.now, slice, content) {
            return;
        }
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        for proxy in &mut self.proxies {
            proxy.slice_written(&mut scene);
        }
        if !is_marker {
            self.observer.slice_written(&mut scene);
        }
    }

    pub(super) fn write_service(&mut self, service: usize, policy: Policy) {
        if self.api.stopped {
            return;
        }
        self.api.services.push(ServiceWrite { at: self.now, service, policy });
        self.timeline.note(self.now, || format!("API: service {service} is {policy:?}"));
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        for proxy in &mut self.proxies {
            proxy.service_written(&mut scene);
        }
        self.observer.service_written(&mut scene);
    }

    pub(super) fn write_node(&mut self, node: NodeId, there: bool) {
        if self.api.stopped {
            return;
        }
        self.api.nodes.push(NodeWrite { at: self.now, node, there });
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        self.observer.node_written(&mut scene);
    }

    /// What a node's kernel does.
    pub(super) fn rules(&self, node: NodeId, family: Family) -> Rules {
        self.proxies[node.0].rules(family)
    }

    /// The drain ends: nothing is written any more.
    pub(super) fn end(&mut self, verdict: Option<Arc<Verdict>>) {
        self.api.stopped = true;
        self.timeline.note(self.now, || super::words::end(verdict.as_deref(), self.naive.is_some()));
        if let Some(verdict) = &verdict
            && self.failure.is_none()
        {
            self.failure = check::end(self, verdict);
        }
        self.ended = Some(Ended { at: self.now, verdict });
        self.agent = None;
        self.pod.listens = false;
        if self.failure.is_none() {
            self.failure = check::claim(self);
        }
    }

    fn is_claim(&self) -> bool {
        check::claims(self)
    }

    fn check_claim(&mut self, event: ProxyEvent) {
        let writes = matches!(event, ProxyEvent::Write(_) | ProxyEvent::EndSync(_));
        if writes && self.ended.is_some() && self.failure.is_none() {
            self.failure = check::claim(self);
        }
    }
}
