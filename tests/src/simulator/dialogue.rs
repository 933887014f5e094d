//! What the agent is told, and what it does then.

use std::sync::Arc;

use lastsyn::core::{
    cluster::{ClusterEvent, HealthOutcome, HealthReport},
    event::{Action, CallerId, Event as CoreEvent},
};

use super::{kube_proxy::Scene, words, world::World};

impl World<'_> {
    /// One thing that the cluster says reaches the agent.
    pub(super) fn tell(&mut self, event: ClusterEvent) {
        self.observer.status_given |= gives_status(&event);
        let words = || format!("agent: {}", words::event(&event));
        match words::subject(&event) {
            Some(subject) => self.timeline.note_news(self.now, || (subject, words())),
            None => self.timeline.note(self.now, words),
        }
        if let Some(naive) = &mut self.naive {
            naive.take(&event, self.now);
            if naive.claims() && self.ended.is_none() {
                self.timeline.note(self.now, || "the naive rule: every node's stamp is newer".to_owned());
                self.end(None);
                return;
            }
        }
        if let Some(observation) = self.observer.observation {
            self.handle(CoreEvent::Cluster(observation, Arc::new(event)));
        }
    }

    /// Something reaches the core.
    pub(super) fn handle(&mut self, event: CoreEvent) {
        let Some(agent) = &mut self.agent else { return };
        agent.core.handle(event, self.now);
        self.carry_out();
    }

    /// Callers other than the first.
    pub(super) fn call(&mut self, caller: u64) {
        self.handle(CoreEvent::HookCalled { caller: CallerId(caller), wall_time: "2026-11-29T20:44:09Z".to_owned() });
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.agent.as_mut().and_then(|agent| agent.core.poll()) {
            self.act(action);
        }
        self.plan_wake();
    }

    fn act(&mut self, action: Action) {
        let (api, schedule, timeline) = (&self.api, &mut self.schedule, &mut self.timeline);
        let mut scene = Scene { now: self.now, api, schedule, timeline };
        match action {
            Action::Read(depth) => self.read(depth),
            Action::Watch(_) => self.pod.watch(self.now),
            Action::ObserveCluster(observation) => {
                self.observer.begin(observation, &mut scene);
                self.follow_local_endpoints();
            }
            Action::ReadConsistently(id) => self.observer.read(id, &mut scene),
            Action::AskFence(request) => {
                self.observer.asks_the_fence(request, &mut scene);
                timeline.note(self.now, || "agent: asks the fence".to_owned());
            }
            Action::Answer(_, verdict) => {
                if self.ended.is_none() {
                    self.end(Some(verdict));
                }
            }
            // The drain's end is the end of what is looked at; the pod is not asked, and has no server.
            Action::ForgetCluster | Action::ReadPod(_) | Action::Tell(_) => {}
            Action::Exit => self.agent = None,
        }
    }
}

fn gives_status(event: &ClusterEvent) -> bool {
    matches!(event, ClusterEvent::Health(HealthReport { outcome: HealthOutcome::Status(_), .. }))
}
