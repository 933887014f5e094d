//! `mode: observe`: for how long new connections kept coming after a pod's termination had begun, and what that says of a hook that
//! sleeps and of `drain.maxWait`. Pure; it stands beside the decision, which is not asked.

pub mod find;
pub mod text;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    core::{
        class::Class,
        clock::{Monotonic, millis},
        event::{Evidence, PortAttempts, SensorState},
        listener::{Family, Port},
        verdict::{NotObserved, Sources, Strategy},
    },
    report::course::Pod,
};

/// The format's number, as a report has one.
pub const FORMAT: u32 = 1;

/// How many listeners are told of, those that were sent to last.
const MOST_LISTENERS: usize = 40;

/// A bound is only reached where something is slower than it was this time.
const LEAST_MAX_WAIT: u64 = 10;

/// By what the agent knew that the pod's termination had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Begun {
    /// SIGTERM came.
    Signal,
    /// The agent's own preStop hook was called: `lastsyn drain --mark`.
    OwnHook,
}

/// What had come by the time at which termination began.
#[derive(Clone, Debug)]
pub struct Before {
    /// When that was.
    pub at: Monotonic,
    /// The same for people: RFC 3339.
    pub wall_time: String,
    /// By what it was known.
    pub by: Begun,
    attempts: BTreeMap<Port, PortAttempts>,
    blind: Duration,
    /// S3: handshakes that had been completed, and attempts of any kind with those that were still under way.
    witness: Option<(u64, u64)>,
}

/// What was seen of one termination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// [`FORMAT`].
    pub format: u32,
    /// The agent's version.
    pub agent: String,
    /// The pod; what of it the agent was told.
    #[serde(default)]
    pub pod: Pod,
    /// When termination began, as far as the agent knew.
    pub started_at: String,
    /// By what it knew.
    pub by: Begun,
    /// For how long it was watched since then.
    pub observed_for_ms: u64,
    /// How long after it the last attempt came that counts; `null` where none came.
    pub last_after_ms: Option<u64>,
    /// Whether there was a quiet period between the last one and the observation's end. Where not, the numbers are lower bounds.
    pub stopped: bool,
    /// What a hook would have needed; `null` where it was not seen when attempts came.
    pub recommended: Option<Recommended>,
    /// Each listener and family that was sent to, the last first.
    pub listeners: Vec<Lane>,
    /// How many more there were.
    pub more: u64,
    /// Who sent, as far as it was kept; `lastAgoMs` is counted from the observation's end.
    pub sources: Option<Sources>,
    /// What could not be seen.
    pub not_observed: Vec<NotObserved>,
}

/// How long one listener was still sent to over one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lane {
    /// The port, as `443` or `"443/udp"`.
    pub port: Port,
    /// The family.
    pub family: Family,
    /// Attempts that count since termination began.
    pub attempts: u64,
    /// Those of them that met no listener.
    pub refused: u64,
    /// How long after it the last one came.
    pub last_after_ms: u64,
}

/// What would have been enough this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recommended {
    /// A hook that only sleeps: until the last attempt, in whole seconds, and a quiet period more.
    pub sleep_ms: u64,
    /// `drain.maxWait`: twice that, at least 10 s. A drain ends earlier by itself, so that a bound with room costs nothing.
    pub max_wait_ms: u64,
}

/// What is known beside the counts.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The pod.
    pub pod: Pod,
    /// `drain.quietPeriod`.
    pub quiet_period: Duration,
    /// Who sent.
    pub sources: Option<Sources>,
}

impl Before {
    /// From a reading that was taken when termination began, with the handshakes under way.
    pub fn new(evidence: &Evidence, wall_time: String, by: Begun) -> Self {
        let Evidence { taken_at, attempts, blind, passive_opens_after, attempts_anywhere, .. } = evidence;
        let connections = evidence.sockets.as_ref().ok().and_then(|sockets| sockets.connections.as_ref());
        let witness = match (passive_opens_after, attempts_anywhere, connections) {
            (Some(completed), Some(anywhere), Some(connections)) => {
                // Whose SYN had come before: each may be completed without another.
                Some((*completed, anywhere.saturating_sub(connections.handshakes.len() as u64)))
            }
            _ => None,
        };
        Self { at: *taken_at, wall_time, by, attempts: attempts.clone(), blind: *blind, witness }
    }

    /// What has come since, by a later reading.
    pub fn since(&self, evidence: &Evidence, known: Known) -> Observation {
        let observed_for_ms = millis(evidence.taken_at.since(self.at));
        let mut listeners: Vec<Lane> = self.lanes(evidence).collect();
        listeners.sort_by_key(|lane| std::cmp::Reverse(lane.last_after_ms));
        let last_after_ms = listeners.first().map(|lane| lane.last_after_ms);
        let more = listeners.len().saturating_sub(MOST_LISTENERS) as u64;
        listeners.truncate(MOST_LISTENERS);
        let quiet = millis(known.quiet_period);
        let not_observed = self.not_observed(evidence);
        let counted = evidence.sensor.strategy() != Strategy::Counters;
        Observation {
            format: FORMAT,
            agent: env!("CARGO_PKG_VERSION").to_owned(),
            pod: known.pod,
            started_at: self.wall_time.clone(),
            by: self.by,
            observed_for_ms,
            last_after_ms,
            stopped: counted && observed_for_ms.saturating_sub(last_after_ms.unwrap_or(0)) >= quiet,
            recommended: counted.then(|| Recommended::of(last_after_ms, quiet)),
            listeners,
            more,
            sources: known.sources,
            not_observed,
        }
    }

    fn lanes<'a>(&'a self, evidence: &'a Evidence) -> impl Iterator<Item = Lane> + 'a {
        let each = |(port, now): (&'a Port, &'a PortAttempts)| Family::ALL.map(|family| (*port, family, now));
        evidence.attempts.iter().flat_map(each).filter_map(|(port, family, now)| {
            let now = now.families.get(family);
            let before = self.attempts.get(&port).map(|before| *before.families.get(family)).unwrap_or_default();
            let since = |class: Class| now.get(class).count.saturating_sub(before.get(class).count);
            let attempts: u64 = Class::ALL.into_iter().filter(|class| class.counts()).map(since).sum();
            let last = now.last().filter(|_| attempts > 0)?;
            let last_after_ms = millis(last.since(self.at));
            Some(Lane { port, family, attempts, refused: since(Class::Refused), last_after_ms })
        })
    }

    /// S3: a handshake that was completed without a SYN that was seen.
    fn missed(&self, evidence: &Evidence) -> Option<String> {
        let (completed_before, anywhere_before) = self.witness?;
        let completed = evidence.namespace.as_ref().ok()?.passive_opens.saturating_sub(completed_before);
        let seen = evidence.attempts_anywhere?.saturating_sub(anywhere_before);
        let missed = completed.checked_sub(seen).filter(|missed| *missed > 0)?;
        Some(format!("{missed} handshakes were completed whose SYN it did not see"))
    }

    fn not_observed(&self, evidence: &Evidence) -> Vec<NotObserved> {
        let what = |what: &str, why| NotObserved { what: what.to_owned(), name: None, family: None, why };
        let mut all = evidence.not_observed.clone();
        let why = match &evidence.sensor {
            SensorState::Unproven { why, .. } => Some(why.clone()),
            SensorState::Proven { since, .. } if *since > self.at => {
                Some("it is known to see every SYN only since after termination had begun".to_owned())
            }
            SensorState::Proven { strategy: Strategy::Counters, .. } => {
                Some("the counters do not tell when a listener was sent to".to_owned())
            }
            SensorState::Proven { .. } => self.missed(evidence),
        };
        all.extend(why.map(|why| what("sensor", why)));
        let unwatched = evidence.blind.saturating_sub(self.blind);
        if !unwatched.is_zero() {
            all.push(what("interface", format!("one may have been up and not watched for {} ms", millis(unwatched))));
        }
        all
    }
}

impl Recommended {
    fn of(last_after_ms: Option<u64>, quiet_ms: u64) -> Self {
        let sleep = last_after_ms.unwrap_or(0).div_ceil(1000) + quiet_ms.div_ceil(1000).max(1);
        Self { sleep_ms: sleep * 1000, max_wait_ms: (sleep * 2).max(LEAST_MAX_WAIT) * 1000 }
    }
}

#[cfg(test)]
pub(crate) mod tests;
