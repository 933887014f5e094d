//! What is asked of the cluster and told to the server in the pod while a drain runs.

use std::collections::BTreeMap;

use super::{
    clock::Monotonic,
    cluster::{ClusterEvent, FenceRequest, NodeName, ObservationId, ReadId, ServiceName, Wanted},
    confirm::Tally,
    drain::Core,
    event::{Action, Depth},
    journal::Transition,
    termination::{PodRead, Sign},
    withdrawal::{Ask, Withdrawal},
};

/// The numbers that have been given away: none is used twice in an agent's life.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    observations: u64,
    reads: u64,
    fences: u64,
}

impl Asked {
    pub(super) fn observation(&mut self) -> ObservationId {
        ObservationId(next(&mut self.observations))
    }

    pub(super) fn read(&mut self) -> ReadId {
        ReadId(next(&mut self.reads))
    }

    pub(super) fn fence(&mut self) -> FenceRequest {
        FenceRequest(next(&mut self.fences))
    }
}

fn next(given: &mut u64) -> u64 {
    *given = given.saturating_add(1);
    *given
}

impl Core {
    /// Whether a node's next answer is of use to the drain under way.
    pub fn health_wanted(&self, node: &NodeName, now: Monotonic) -> Wanted {
        let Some(drain) = &self.drain else { return Wanted::No };
        drain.withdrawal.as_ref().map_or(Wanted::No, |withdrawal| withdrawal.health_wanted(node, drain.started, now))
    }

    /// Counts the relevant changes of the drain under way, and says when the last one came. After each, every node's answers
    /// may be of use again.
    pub fn last_change(&self) -> (u64, Option<Monotonic>) {
        let withdrawal = self.drain.as_ref().and_then(|drain| drain.withdrawal.as_ref());
        withdrawal.map(Withdrawal::last_change).unwrap_or_default()
    }

    /// Whether, as far as slices and Services say, nobody routes to the pod any more in the drain under way.
    pub fn is_unrouted(&self) -> bool {
        self.drain.as_ref().and_then(|drain| drain.withdrawal.as_ref()).is_some_and(Withdrawal::is_unrouted)
    }

    /// E6: the Services whose `healthCheckNodePort` is to be asked on this node.
    pub fn local_ports(&self) -> BTreeMap<ServiceName, u16> {
        let withdrawal = self.drain.as_ref().and_then(|drain| drain.withdrawal.as_ref());
        withdrawal.map(Withdrawal::local_ports).unwrap_or_default()
    }

    /// How many nodes are in which state, both families together.
    pub fn node_tally(&self) -> Tally {
        let withdrawal = self.drain.as_ref().and_then(|drain| drain.withdrawal.as_ref());
        withdrawal.map(Withdrawal::tally).unwrap_or_default()
    }

    /// Takes in what the cluster says, if it says it to the drain under way.
    pub(super) fn cluster_says(&mut self, observation: ObservationId, event: &ClusterEvent, now: Monotonic) {
        let Some(drain) = &mut self.drain else { return };
        let Some(withdrawal) = drain.withdrawal.as_mut().filter(|withdrawal| withdrawal.observation() == observation)
        else {
            return;
        };
        withdrawal.handle(event, now, &mut self.journal);
        self.status_given = withdrawal.status_given();
        if withdrawal.lists_the_pod_terminating() {
            self.termination_shown(Sign::Slice, now);
        }
    }

    /// S5: takes in what a read of the pod shows.
    pub(super) fn pod_read(&mut self, id: ReadId, outcome: &PodRead, now: Monotonic) {
        let Some(drain) = &mut self.drain else { return };
        if drain.termination.answered(id, outcome, now) {
            self.journal.record(now, Transition::TerminationShown(Sign::Pod));
        }
    }

    /// S5: takes in a sign that the pod is terminating.
    pub(super) fn termination_shown(&mut self, sign: Sign, now: Monotonic) {
        if self.drain.as_mut().is_some_and(|drain| drain.termination.shown(sign)) {
            self.journal.record(now, Transition::TerminationShown(sign));
        }
    }

    /// Takes in what only time brings.
    pub(super) fn expire(&mut self, now: Monotonic) {
        if let Some(withdrawal) = self.drain.as_mut().and_then(|drain| drain.withdrawal.as_mut()) {
            withdrawal.expire(now, &mut self.journal);
        }
    }

    /// Asks and tells what is to be asked and told now. Returns when there is next something, if nothing comes before.
    pub(super) fn ask(&mut self, now: Monotonic) -> Option<Monotonic> {
        let drain = self.drain.as_ref()?;
        let read_wanted = drain.read_wanted_from();
        let read_due = drain.withdrawal.as_ref().and_then(|withdrawal| withdrawal.read_due(read_wanted));
        let seen = self.evidence.as_ref().map(|evidence| evidence.taken_at);
        if read_due.is_some_and(|due| due <= now) && seen < read_wanted {
            // The kernel's evidence is cheaper, and may show that the end is not near.
            self.read(Depth::Listeners, now);
        }
        let near = read_wanted.filter(|wanted| seen >= Some(*wanted));
        let settings = &self.settings;
        let drain = self.drain.as_mut()?;
        if let Some(withdrawal) = &mut drain.withdrawal {
            while let Some(ask) = withdrawal.ask(near, &mut self.asked, now) {
                self.actions.push_back(match ask {
                    Ask::Read(id) => Action::ReadConsistently(id),
                    Ask::Fence(request) => Action::AskFence(request),
                });
            }
        }
        if drain.termination.due().is_some_and(|due| due <= now) {
            let id = self.asked.read();
            if drain.termination.ask(id, now) {
                self.actions.push_back(Action::ReadPod(id));
            }
        }
        let mut tell_due = None;
        if let Some(fail_after) = settings.fail_after {
            let situation = drain.situation(settings);
            while let Some(phase) = drain.phases.advance(fail_after, situation, now) {
                self.actions.push_back(Action::Tell(phase));
            }
            tell_due = drain.phases.due(fail_after, situation);
        }
        let refuted_due = drain.termination.is_refuted().then(|| drain.started + settings.min_wait);
        let withdrawal = drain.withdrawal.as_ref();
        let cluster_due = withdrawal.and_then(Withdrawal::due);
        let read_due = withdrawal.and_then(|withdrawal| withdrawal.read_due(read_wanted));
        [cluster_due, read_due, drain.termination.due(), tell_due, refuted_due]
            .into_iter()
            .flatten()
            .filter(|due| *due > now)
            .min()
    }
}
