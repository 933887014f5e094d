//! The phases: what the server in the pod is told, and when. `announce` (clients are asked to leave), then
//! `fail-readiness`; the end is the hook's answer.

use std::time::Duration;

use super::clock::Monotonic;

/// What the server in the pod is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Ask clients to leave. New connections are still served, and readiness holds.
    Announce,
    /// Fail readiness.
    FailReadiness,
    /// Take back what can be: the pod is not terminating (S5).
    TakeBack,
}

/// When readiness fails (`readiness.failAfter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailAfter {
    /// Once another endpoint takes over wherever the pod was routed to, as until then kube-proxy's fallback needs it; and
    /// not within `loadBalancer.window` of the hook's call.
    Auto,
    /// Not before the end.
    Never,
    /// That long after the hook's call.
    Fixed(Duration),
}

/// What has been told in one drain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    told: Option<Phase>,
}

/// What the phases go by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// The hook's call.
    pub(super) started: Monotonic,
    /// S4: from when on the server may be told, by what is known now.
    pub(super) tells_from: Option<Monotonic>,
    /// The pod has been withdrawn everywhere, as far as slices and Services say.
    pub(super) withdrawn: bool,
    /// How long load balancers are to find the pod ready.
    pub(super) window: Duration,
}

impl Phase {
    /// The name that logs and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Announce => "announce",
            Self::FailReadiness => "fail-readiness",
            Self::TakeBack => "take-back",
        }
    }
}

impl Phases {
    /// What is to be told now.
    pub(super) fn advance(&mut self, fail_after: FailAfter, situation: Situation, now: Monotonic) -> Option<Phase> {
        let (next, due) = self.next(fail_after, situation)?;
        (due <= now).then(|| *self.told.insert(next))
    }

    /// When something is next to be told, by what is known now.
    pub(super) fn due(self, fail_after: FailAfter, situation: Situation) -> Option<Monotonic> {
        self.next(fail_after, situation).map(|(_, due)| due)
    }

    /// What is to be taken back, where anything was told.
    pub(super) fn take_back(&mut self) -> Option<Phase> {
        self.told.take().map(|_| Phase::TakeBack)
    }

    fn next(self, fail_after: FailAfter, situation: Situation) -> Option<(Phase, Monotonic)> {
        let Situation { started, tells_from, withdrawn, window } = situation;
        let tells_from = tells_from?;
        let fails_from = match fail_after {
            FailAfter::Auto => withdrawn.then_some(started + window),
            FailAfter::Never => None,
            FailAfter::Fixed(length) => Some(started + length),
        };
        match self.told {
            None => Some((Phase::Announce, tells_from)),
            Some(Phase::Announce) => Some((Phase::FailReadiness, tells_from.max(fails_from?))),
            Some(Phase::FailReadiness | Phase::TakeBack) => None,
        }
    }
}
