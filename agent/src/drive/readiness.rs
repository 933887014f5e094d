//! Whose readiness the agent answers for, and whether it fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet};

use crate::{
    client::{Candidate, Connection, ExchangeError},
    config,
    core::phase::Phase,
    server::readiness::Readiness,
};

/// Between two looks whether a server has gone. A restart of a container takes longer.
const LOOK: Duration = Duration::from_millis(200);

/// Fails and restores readiness.
pub(super) struct Gate {
    upstream: BTreeMap<String, config::Url>,
    failing: watch::Sender<BTreeSet<String>>,
    /// After a drain: waits for each server's end.
    restoring: JoinSet<()>,
}

impl Gate {
    /// The gate, open, and what the server answers by.
    pub(super) fn new(config: &config::Readiness) -> (Self, Readiness) {
        let (failing, watched) = watch::channel(BTreeSet::new());
        let upstream = config.upstream.clone();
        (Self { upstream: upstream.clone(), failing, restoring: JoinSet::new() }, Readiness::new(upstream, watched))
    }

    /// Does what a phase asks for; `false` where it asks for nothing.
    pub(super) fn turn(&mut self, phase: Phase) -> bool {
        let failing = match phase {
            Phase::Announce => return false,
            Phase::FailReadiness => self.upstream.keys().cloned().collect(),
            Phase::TakeBack => BTreeSet::new(),
        };
        self.restoring.abort_all();
        self.failing.send_replace(failing);
        !self.upstream.is_empty()
    }

    /// The hook was answered. What fails by then fails for the server that was drained. If it was only its container that
    /// was restarted, another one comes in its place, which nobody has asked to leave: its readiness is its own again.
    pub(super) fn drain_ended(&mut self) {
        self.restoring.abort_all();
        for name in self.failing.borrow().iter() {
            let Some(url) = self.upstream.get(name) else { continue };
            let places: Vec<_> = url.addresses().iter().copied().map(Candidate::Tcp).collect();
            let (name, failing) = (name.clone(), self.failing.clone());
            self.restoring.spawn(async move {
                while !gone(&places).await {
                    tokio::time::sleep(LOOK).await;
                }
                failing.send_modify(|failing| {
                    failing.remove(&name);
                });
                tracing::debug!(name, "the server has gone; readiness is that of whatever comes in its place");
            });
        }
    }
}

/// Whether nobody listens at any of the places. One that is too busy to take a connection is not gone.
async fn gone(places: &[Candidate]) -> bool {
    for place in places {
        if !matches!(Connection::open(place).await, Err(ExchangeError::Connect(_))) {
            return false;
        }
    }
    true
}
