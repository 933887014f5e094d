//! One node: its connection, and what each family has shown.

use crate::core::{
    clock::Monotonic,
    cluster::{FamilyHealth, HealthOutcome, HealthReport},
    event::ByFamily,
    listener::Family,
};

use super::{
    Bounds, FenceProgress, FenceReach, NodeState, OfFamily, Shared,
    change::{self, Change},
    connection::{Answer, Answers, Arrival, Connection},
    proof::By,
    reach::{OperatingSystem, Reach, Reached, StatusGiven, Why},
    settled::Settled,
    standing::Standing,
    syncs::Syncs,
    waited,
};

/// One node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    system: OperatingSystem,
    connection: Connection,
    families: ByFamily<Evidence>,
    /// What the fence says of it.
    fence: ByFamily<Option<FenceReach>>,
    /// What the last answer without a status said, or why there was none.
    said: Option<Box<str>>,
}

/// What one node has shown over one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Evidence {
    reached: Reached,
    answers: Option<Answers>,
    /// Of which change the rest speaks.
    change: u64,
    /// C14: the last contradiction since that change.
    contradicted: Option<Monotonic>,
    syncs: Syncs,
    settled: Settled,
    proof: Option<Proof>,
}

/// The strongest evidence so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Proof {
    by: By,
    /// When the first was known. A SYN before that contradicts nothing.
    since: Monotonic,
}

// === impl Node ===

impl Node {
    pub(super) fn new(system: OperatingSystem) -> Self {
        let nothing = Evidence {
            reached: Reached::NOT_ASKED,
            answers: None,
            change: 0,
            contradicted: None,
            syncs: Syncs::default(),
            settled: Settled::default(),
            proof: None,
        };
        let families = ByFamily { v4: nothing, v6: nothing };
        Self { system, connection: Connection::default(), families, fence: ByFamily::default(), said: None }
    }

    /// Its object was read again. One that had gone may be another machine of the same name.
    pub(super) fn add_again(&mut self, system: OperatingSystem) {
        if self.is_gone() {
            *self = Self::new(system);
        }
        self.system = system;
        for family in Family::ALL {
            self.families.get_mut(family).reached.is_of(system);
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        Family::ALL.into_iter().all(|family| self.families.get(family).reached.reach() == Reach::Gone)
    }

    /// C12: what it showed before says nothing of a machine that nobody knows any more.
    pub(super) fn remove(&mut self) {
        for family in Family::ALL {
            let evidence = self.families.get_mut(family);
            evidence.reached.gone();
            evidence.proof = None;
        }
    }

    /// Takes a health report in. Returns the node's operating system if it gave a status.
    pub(super) fn health(&mut self, report: &HealthReport, shared: &Shared<'_>) -> Option<OperatingSystem> {
        if self.is_gone() {
            return None;
        }
        match self.connection.arrive(report.connection) {
            Arrival::Stale => return None,
            Arrival::New => self.void_stamps(),
            Arrival::Same => {}
        }
        match &report.outcome {
            HealthOutcome::Status(status) => {
                for family in Family::ALL {
                    self.answer(family, report, status.of(family), shared);
                }
                (status.v4.is_some() || status.v6.is_some()).then_some(self.system)
            }
            HealthOutcome::NoStatus(why) => {
                self.said = Some(why.as_str().into());
                for family in Family::ALL {
                    self.families.get_mut(family).reached.no_status(report, shared.bounds);
                }
                None
            }
            HealthOutcome::TimedOut => self.silent("it did not answer in time"),
            HealthOutcome::Refused => self.broken("connection refused"),
            HealthOutcome::Broken => self.broken("the connection broke"),
        }
    }

    fn answer(&mut self, family: Family, report: &HealthReport, health: Option<FamilyHealth>, shared: &Shared<'_>) {
        let evidence = self.families.get_mut(family);
        let Some(health) = health else {
            evidence.reached.no_status(report, shared.bounds);
            return;
        };
        evidence.reached.status();
        if let Some(answer) = Answers::take(&mut evidence.answers, report, health) {
            evidence.judge(&answer, shared.families.get(family), shared.bounds);
        }
    }

    /// Whatever answers next does so over a new connection, which voids the stamps of this one.
    fn broken(&mut self, why: &str) -> Option<OperatingSystem> {
        self.connection.break_off();
        self.silent(why)
    }

    fn silent(&mut self, why: &str) -> Option<OperatingSystem> {
        self.said = Some(why.into());
        for family in Family::ALL {
            self.families.get_mut(family).reached.silent(self.system);
        }
        None
    }

    /// C1: no stamp of the process before says anything of the one that answers now.
    fn void_stamps(&mut self) {
        for family in Family::ALL {
            let evidence = self.families.get_mut(family);
            evidence.answers = None;
            evidence.syncs = Syncs::default();
            evidence.settled = Settled::default();
        }
    }

    /// C4, C11: the fence's markers showed.
    pub(super) fn fence(&mut self, progress: &FenceProgress, shared: &Shared<'_>) {
        if self.is_gone() {
            return;
        }
        let evidence = self.families.get_mut(progress.family);
        let OfFamily { change, requests, .. } = shared.families.get(progress.family);
        let Some(since) = evidence.since(change) else { return };
        if progress.proves(requests, since, shared.bounds) {
            evidence.prove(By::Fence, progress.received_at);
        }
    }

    /// C12: what the fence says of it.
    pub(super) fn fence_reach(&mut self, family: Family, reach: &FenceReach) {
        *self.fence.get_mut(family) = Some(reach.clone());
    }

    /// How far its status, or what it shows the fence, is within reach. Whichever of the two can still come is awaited.
    fn reach(&self, family: Family) -> Reach {
        let reached = &self.families.get(family).reached;
        match (reached.reach(), self.fence.get(family)) {
            (Reach::Gone, _) => Reach::Gone,
            (_, Some(FenceReach::Awaited)) => Reach::Awaited,
            (_, Some(FenceReach::Unobservable(_))) if reached.is_untouched() => Reach::NoStatus,
            (own, _) => own,
        }
    }

    /// C14: a SYN came through it at `at`.
    pub(super) fn contradicted(&mut self, family: Family, shared: &Shared<'_>, at: Monotonic) -> Option<By> {
        let evidence = self.families.get_mut(family);
        evidence.since(&shared.families.get(family).change)?;
        let contradicted = evidence.proof.filter(|proof| proof.since <= at)?;
        evidence.void(Some(at));
        Some(contradicted.by)
    }

    /// Where it stands, as far as it is counted.
    pub(super) fn standing(&self, family: Family, change: &Change) -> Standing {
        let evidence = self.families.get(family);
        Standing { reach: self.reach(family), by: evidence.by(change) }
    }

    /// What is known of it.
    pub(super) fn state(&self, family: Family, change: &Change, given: StatusGiven) -> NodeState {
        let Standing { reach, by } = self.standing(family, change);
        match by {
            Some(By::Waited) => NodeState::Waited,
            Some(by) => NodeState::Confirmed { by, assumes: by.assumes(change.policy_changed()) },
            None if reach.is_unobservable(given) => NodeState::Unobservable { why: self.why(reach, family) },
            None => NodeState::Pending,
        }
    }

    fn why(&self, reach: Reach, family: Family) -> Why {
        match (reach, &self.said) {
            (Reach::Gone, _) => Why::Gone,
            (Reach::Silent(_), Some(said)) => Why::Silent(said.to_string()),
            (Reach::NoStatus, Some(said)) => Why::NoStatus(said.to_string()),
            (_, _) => match self.fence.get(family) {
                Some(FenceReach::Unobservable(why)) => Why::NoStatus(why.clone()),
                _ => Why::NoStatus(format!("its health server has no status of {family}")),
            },
        }
    }

    /// Whether its health answers can add anything.
    pub(super) fn wants_health(&self, family: Family, change: &Change) -> bool {
        !self.is_gone() && self.families.get(family).by(change) < Some(By::SettledByWait)
    }

    /// The next time after `now` from which its answer counts for more than before.
    pub(super) fn due(&self, family: Family, change: &Change, bounds: &Bounds, now: Monotonic) -> Option<Monotonic> {
        if !self.wants_health(family, change) {
            return None;
        }
        let evidence = self.families.get(family);
        let contradicted = evidence.contradicted.filter(|_| evidence.change == change.number());
        let since = change.last()?.max(contradicted.unwrap_or_default());
        let base = evidence.answers.map_or(since, |answers| answers.base_at());
        change::due(since, since.max(base), bounds, now)
    }
}

// === impl Evidence ===

impl Evidence {
    /// What was shown after the last relevant change.
    fn by(&self, change: &Change) -> Option<By> {
        self.proof.filter(|_| self.change == change.number()).map(|proof| proof.by)
    }

    /// From when on evidence counts: the last relevant change, or a contradiction since. Voids what is of another change.
    fn since(&mut self, change: &Change) -> Option<Monotonic> {
        if self.change != change.number() {
            self.change = change.number();
            self.void(None);
        }
        Some(change.last()?.max(self.contradicted.unwrap_or_default()))
    }

    fn void(&mut self, contradicted: Option<Monotonic>) {
        self.contradicted = contradicted;
        self.syncs = Syncs::default();
        self.settled = Settled::default();
        self.proof = None;
    }

    /// C5, C6, C7: what an answer shows.
    fn judge(&mut self, answer: &Answer, shared: &OfFamily, bounds: &Bounds) {
        let Some(since) = self.since(&shared.change) else { return };
        let syncs = self.syncs.proves(answer, since, bounds).then_some(By::Syncs);
        let settled = self.settled.proves(answer, since, bounds);
        let waited = waited::proves(answer, since, bounds).then_some(By::Waited);
        if let Some(by) = syncs.max(settled).max(waited) {
            self.prove(by, answer.received_at);
        }
    }

    /// C13: the stronger replaces the weaker.
    fn prove(&mut self, by: By, at: Monotonic) {
        let (by, since) = self.proof.map_or((by, at), |proof| (proof.by.max(by), proof.since.min(at)));
        self.proof = Some(Proof { by, since });
    }
}
