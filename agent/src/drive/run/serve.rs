//! What the server asks of the loop.

use std::time::Duration;

use tokio::sync::oneshot;

use super::Agent;
use crate::{
    core::event::{CallerId, Depth, Event},
    drive::{
        clock,
        cluster::Cluster,
        handle::Request,
        look::{Seen, look},
        probes,
    },
    observe::Begun,
};

/// Evidence that is younger than this is shown again to whoever looks: looking often shall cost little.
const FRESH: Duration = Duration::from_millis(20);

impl Agent {
    pub(super) async fn serve(&mut self, request: Request) {
        match request {
            Request::Drain { answer } => {
                let caller = CallerId(self.callers);
                let (sender, verdict) = oneshot::channel();
                if answer.send((caller, verdict)).is_ok() {
                    self.callers += 1;
                    self.waiting.insert(caller, sender);
                    self.handle(Event::HookCalled { caller, wall_time: clock::wall_time() });
                    self.course.follow(&self.core, clock::now());
                }
            }
            Request::Mark => {
                self.termination_began(Begun::OwnHook).await;
                self.handle(Event::OwnHookCalled);
            }
            Request::KubeletAsked(asker) => probes::kubelet_asked(&mut self.reader, asker),
            Request::IsOfThisNode { asker, answer } => {
                // Nobody waits any more if this fails.
                answer.send(probes::is_of_this_node(&self.reader, asker)).ok();
            }
            Request::Leave(caller) => {
                if self.waiting.remove(&caller).is_some() {
                    self.handle(Event::HookLeft { caller });
                }
            }
            Request::Report { answer } => {
                // What has come after the end, up to now.
                if !self.core.is_draining() {
                    self.read(Depth::Listeners).await;
                }
                let reports = self.reports();
                drop(answer.send((reports, self.observation().await)));
            }
            Request::Look { answer } => {
                let now = clock::now();
                let stale = self.core.evidence().is_none_or(|evidence| evidence.taken_at.age_at(now).reaches(FRESH));
                if stale {
                    self.read(Depth::Listeners).await;
                }
                // Nobody waits any more if this fails.
                let left_out = self.cluster.as_ref().map_or(0, Cluster::left_out);
                let seen = Seen {
                    core: &self.core,
                    reader: &self.reader,
                    settings: &self.course.settings,
                    recorder: &self.course.recorder,
                };
                let mut look = look(seen, left_out, self.started, clock::now());
                self.follow_sources();
                look.status.sources = self.knockers.now(&self.reader, clock::now());
                look.status.verdict = look.status.verdict.map(|verdict| self.with_sources(verdict));
                drop(answer.send(look));
            }
        }
    }
}
