//! The verdict, a pure function of what is known.

use std::time::Duration;

use super::{
    clock::{Monotonic, millis},
    drain::Drain,
    event::{Evidence, PortAttempts, SensorState},
    listener::{Family, Port},
    verdict::{Condition, FamilyCounts, HeldBy, Listener, NotObserved, Protocol, Reason, Sensor, Strategy, Verdict},
    watched::{Watched, WatchedPort},
};

/// A drain that has ended, with all that its verdict tells of.
pub(super) struct Ended<'a> {
    pub(super) reason: Reason,
    pub(super) at: Monotonic,
    pub(super) drain: &'a Drain,
    pub(super) evidence: Option<&'a Evidence>,
    pub(super) watched: &'a Watched,
    pub(super) quiet_period: Duration,
}

/// Builds the verdict.
pub(super) fn verdict(ended: &Ended<'_>) -> Verdict {
    let Ended { reason, at, drain, evidence, watched, quiet_period } = ended;
    let mut not_observed = evidence.map_or_else(
        || vec![not_observed("sensor", "nothing could be read since the hook's call".to_owned())],
        |evidence| unseen(drain, evidence, watched),
    );
    not_observed.push(routing());
    Verdict {
        reason: *reason,
        started_at: drain.wall_time.clone(),
        duration_ms: millis(at.since(drain.started)),
        held_by: held_by(drain, *at),
        holding: if *reason == Reason::Bound { drain.holding.clone() } else { Vec::new() },
        listeners: evidence.map_or_else(Vec::new, |evidence| {
            let from = From { drain: Some(drain.started), quiet_period: *quiet_period, now: *at };
            listeners(watched, evidence, from)
        }),
        assumes: Vec::new(),
        not_observed,
        sensor: Sensor {
            strategy: evidence.map_or(Strategy::Counters, |evidence| evidence.sensor.strategy()),
            healthy: evidence.is_some_and(|evidence| matches!(evidence.sensor, SensorState::Proven { .. }))
                && drain.blind.is_none()
                && !drain.sensor_failed,
        },
    }
}

/// S3 and its like: everything for which `quiet` would claim more than was observed.
pub(super) fn unseen(drain: &Drain, evidence: &Evidence, watched: &Watched) -> Vec<NotObserved> {
    let mut unseen = evidence.not_observed.clone();
    if let SensorState::Unproven { why, .. } = &evidence.sensor {
        unseen.push(not_observed("sensor", why.clone()));
    }
    if let Some(surplus) = drain.blind {
        let why = format!("{surplus} more handshakes were completed in this namespace than SYNs were seen");
        unseen.push(not_observed("sensor", why));
    }
    if let Err(why) = &evidence.sockets {
        unseen.push(not_observed("sockets", why.clone()));
    }
    if watched.ports().next().is_none() {
        let why = "nothing listens on a port that can be reached from outside the pod".to_owned();
        unseen.push(not_observed("listener", why));
    }
    if !Family::ALL.iter().any(|family| *evidence.families.get(*family)) {
        unseen.push(not_observed("address", "the pod has no address but loopback and link-local ones".to_owned()));
    }
    unseen.sort();
    unseen.dedup();
    unseen
}

/// What this version cannot see at all.
fn routing() -> NotObserved {
    not_observed("routing", "this version does not watch EndpointSlices, Services or the nodes' proxies".to_owned())
}

fn not_observed(what: &str, why: String) -> NotObserved {
    NotObserved { what: what.to_owned(), name: None, family: None, why }
}

fn held_by(drain: &Drain, end: Monotonic) -> HeldBy {
    let held = |condition| drain.held.get(&condition).map_or(0, |until| millis(end.min(*until).since(drain.started)));
    HeldBy {
        floor_ms: held(Condition::Floor),
        quiet_ms: held(Condition::Quiet),
        retry_ms: held(Condition::Retry),
        handshakes_ms: held(Condition::Handshakes),
        connections_ms: held(Condition::Connections),
    }
}

/// From where counts and ages are told.
#[derive(Clone, Copy)]
pub(super) struct From {
    /// The hook's call, where there was one: counts are told from there.
    pub(super) drain: Option<Monotonic>,
    pub(super) quiet_period: Duration,
    pub(super) now: Monotonic,
}

/// Every watched listener, per family that the pod has an address in.
pub(super) fn listeners(watched: &Watched, evidence: &Evidence, from: From) -> Vec<Listener> {
    watched.ports().map(|(port, entry)| listener(port, entry, evidence, from)).collect()
}

fn listener(port: Port, entry: &WatchedPort, evidence: &Evidence, from: From) -> Listener {
    let attempts = evidence.attempts.get(&port);
    Listener {
        port,
        protocol: Protocol::Tcp,
        closed_at_ms: from.drain.and_then(|start| entry.closed_at.map(|at| millis(at.since(start)))),
        families: Family::ALL
            .into_iter()
            .filter(|family| *evidence.families.get(*family))
            .map(|family| family_counts(family, attempts, entry, evidence, from))
            .collect(),
    }
}

fn family_counts(
    family: Family,
    attempts: Option<&PortAttempts>,
    entry: &WatchedPort,
    evidence: &Evidence,
    from: From,
) -> FamilyCounts {
    let counts = attempts.map(|attempts| *attempts.families.get(family)).unwrap_or_default();
    let (new_before, opaque_before) = if from.drain.is_some() { *entry.at_start.get(family) } else { (0, 0) };
    let last = counts.last().max(evidence.unattributed.get(family).last);
    let quiet_since = last.max(from.drain).max(attempts.map(|attempts| attempts.watched_since));
    FamilyCounts {
        family,
        new: counts.new.count.saturating_sub(new_before),
        opaque: counts.opaque.count.saturating_sub(opaque_before),
        last_attempt_ago_ms: last.map(|last| last.age_at(from.now).as_millis()),
        quiet: attempts.is_some() && quiet_since.is_some_and(|since| since.age_at(from.now).reaches(from.quiet_period)),
    }
}
