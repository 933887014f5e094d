//! A drain under way: what is known of it, and what has held it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    clock::Monotonic,
    cluster::ObservationId,
    confirm::StatusGiven,
    counts::CountsBefore,
    drain::Core,
    ending::Holds,
    event::{CallerId, Evidence, SensorState},
    phase::{Phases, Situation},
    settings::Settings,
    termination::Termination,
    verdict::Condition,
    withdrawal::Withdrawal,
};

/// How long before all else is met the consistent read is made (C9): its answer is to be there by then.
const READ_AHEAD: Duration = Duration::from_millis(250);

/// A drain under way.
#[derive(Clone, Debug)]
pub(super) struct Drain {
    pub(super) started: Monotonic,
    pub(super) bound: Monotonic,
    pub(super) wall_time: String,
    pub(super) callers: BTreeSet<CallerId>,
    /// Until when each condition is known to have held the end.
    pub(super) held: BTreeMap<Condition, Monotonic>,
    /// What each condition said when it was last known.
    holds: Option<Holds>,
    /// E5, E6: what is known of the cluster, where it is watched.
    pub(super) withdrawal: Option<Withdrawal>,
    /// S5: whether the pod is terminating.
    pub(super) termination: Termination,
    /// What the server in the pod has been told.
    pub(super) phases: Phases,
    /// What had been counted when it began; `None` until the evidence has been read once.
    pub(super) counts_before: Option<CountsBefore>,
    /// For how long an interface may have been up and not watched before it began, as far as was known.
    pub(super) unwatched_before: Duration,
    /// S3: the witness has shown the sensor to be blind in this drain, by how many handshakes.
    pub(super) blind: Option<u64>,
    /// The sensor was not proven at some time in this drain, and why.
    pub(super) sensor_failed: Option<String>,
}

/// Who began it.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) caller: CallerId,
    pub(super) wall_time: String,
}

impl Drain {
    /// A drain that begins with nothing known (S2).
    pub(super) fn new(
        settings: &Settings,
        begun: Begun,
        given: StatusGiven,
        observation: ObservationId,
        now: Monotonic,
    ) -> Self {
        let routing = settings.routing.as_ref();
        Self {
            started: now,
            bound: now + settings.max_wait,
            wall_time: begun.wall_time,
            callers: BTreeSet::from([begun.caller]),
            held: BTreeMap::new(),
            holds: None,
            withdrawal: routing.map(|routing| Withdrawal::new(routing, observation, given, now)),
            termination: Termination::new(settings.restart_guard, now),
            phases: Phases::default(),
            counts_before: None,
            unwatched_before: Duration::ZERO,
            blind: None,
            sensor_failed: None,
        }
    }

    /// S1: the bound is at least this long after the hook's call. It never becomes an earlier one: what had not been known
    /// is no reason to end.
    pub(super) fn extend(&mut self, max_wait: Duration) -> Monotonic {
        self.bound = self.bound.max(self.started + max_wait);
        self.bound
    }

    /// Takes over what the conditions say at `now`, by evidence that was taken at `taken_at`. Returns what is known then.
    pub(super) fn note(&mut self, holds: Holds, taken_at: Monotonic, now: Monotonic) -> Holds {
        for (condition, until) in holds.held(self.holds, taken_at, now) {
            let known = self.held.entry(condition).or_insert(until);
            *known = until.max(*known);
        }
        let known = holds.or(self.holds, taken_at);
        self.holds = Some(known);
        known
    }

    /// C9: from when on the consistent read is wanted, by what else holds; `None` while nobody knows.
    pub(super) fn read_wanted_from(&self) -> Option<Monotonic> {
        let others_met = self.holds?.met_from_but_for(Condition::Routing)?;
        Some(others_met - READ_AHEAD)
    }

    /// What the phases go by.
    pub(super) fn situation(&self, settings: &Settings) -> Situation {
        Situation {
            started: self.started,
            tells_from: self.termination.tells_from(),
            withdrawn: self.withdrawal.as_ref().is_some_and(Withdrawal::is_unrouted),
            window: settings.routing.as_ref().map_or(Duration::ZERO, |routing| routing.load_balancer_window),
        }
    }

    /// S3: takes over whether the sensor saw everything, as far as a reading in this drain tells.
    pub(super) fn note_sensor(&mut self, surplus: Option<u64>, evidence: &Evidence) {
        if let Some(surplus) = surplus {
            self.blind = Some(self.blind.unwrap_or(0).saturating_add(surplus));
        }
        let failed = match &evidence.sensor {
            SensorState::Unproven { why, .. } => Some(why.clone()),
            SensorState::Proven { since, .. } if *since > self.started => {
                Some("it was found in place only after the hook's call".to_owned())
            }
            SensorState::Proven { .. } => None,
        };
        self.sensor_failed = self.sensor_failed.take().or(failed);
        self.counts_before.get_or_insert_with(|| CountsBefore::at(self.started, evidence));
    }

    /// What is known to hold the end.
    pub(super) fn holding(&self) -> Vec<Condition> {
        self.holds.map_or_else(Vec::new, |holds| holds.holding().collect())
    }
}

impl Core {
    /// S1: takes over how long drains may last. The one under way lasts as long too, where that is longer.
    pub(super) fn max_wait_known(&mut self, max_wait: Duration) {
        self.settings.max_wait = max_wait;
        if let Some(drain) = &mut self.drain {
            self.bound = Some(drain.extend(max_wait));
        }
    }
}
