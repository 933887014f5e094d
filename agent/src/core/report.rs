//! The verdict, a pure function of what is known.

use std::time::Duration;

use super::{
    class::Class,
    clock::{Monotonic, millis},
    counts::CountsBefore,
    event::{Evidence, SensorState},
    listener::{Family, Port},
    quiet::{self, Since},
    settings::NoRouting,
    under_way::Drain,
    verdict::{Condition, FamilyCounts, HeldBy, Listener, NotObserved, Reason, Sensor, Strategy, Verdict},
    watched::{Watched, WatchedPort},
    withdrawal::Withdrawal,
};

/// A drain that has ended, with all that its verdict tells of.
pub(super) struct Ended<'a> {
    pub(super) reason: Reason,
    pub(super) at: Monotonic,
    pub(super) drain: &'a Drain,
    /// What was read last, and where quiet counts from by that; `None`: nothing since the hook's call.
    pub(super) seen: Option<(&'a Evidence, Since)>,
    pub(super) watched: &'a Watched,
    pub(super) strategy: Strategy,
    pub(super) quiet_period: Duration,
    pub(super) no_routing: NoRouting,
}

/// Builds the verdict.
pub(super) fn verdict(ended: &Ended<'_>) -> Verdict {
    let Ended { reason, at, drain, seen, watched, strategy, quiet_period, no_routing } = ended;
    let mut not_observed = seen.map_or_else(
        || vec![not_observed("sensor", "nothing could be read since the hook's call".to_owned())],
        |(evidence, _)| unseen(drain, evidence, watched),
    );
    match &drain.withdrawal {
        None => not_observed.push(routing(*no_routing)),
        Some(withdrawal) => {
            not_observed.extend(withdrawal.told().not_observed);
            not_observed.extend(withdrawal.outstanding().filter(|_| *reason == Reason::Bound));
        }
    }
    if let Some(why) = drain.termination.unknown() {
        not_observed.push(termination(why));
    }
    Verdict {
        reason: *reason,
        started_at: drain.wall_time.clone(),
        duration_ms: millis(at.since(drain.started)),
        held_by: held_by(drain, *at),
        holding: drain.holding(),
        listeners: seen.map_or_else(Vec::new, |(evidence, since)| {
            let from = From { before: drain.counts_before.as_ref(), since, quiet_period: *quiet_period };
            listeners(watched, evidence, from)
        }),
        routing: drain.withdrawal.as_ref().map(|withdrawal| withdrawal.report(drain.started)),
        assumes: drain.withdrawal.as_ref().map_or_else(Vec::new, Withdrawal::assumes),
        not_observed,
        sensor: Sensor {
            strategy: *strategy,
            healthy: seen.is_some() && drain.blind.is_none() && drain.sensor_failed.is_none(),
            blind_ms: seen.map_or(0, |(evidence, _)| millis(evidence.blind.saturating_sub(drain.unwatched_before))),
            witness: seen.is_some_and(|(evidence, _)| evidence.attempts_anywhere.is_some()),
        },
        sources: None,
        late: None,
    }
}

/// S3 and its like: everything for which `quiet` would claim more than was observed.
pub(super) fn unseen(drain: &Drain, evidence: &Evidence, watched: &Watched) -> Vec<NotObserved> {
    let mut unseen = evidence.not_observed.clone();
    match (&evidence.sensor, &drain.sensor_failed) {
        (SensorState::Unproven { why, .. }, _) => unseen.push(not_observed("sensor", why.clone())),
        (_, Some(why)) => {
            let why = format!("it was not known to see every SYN for a part of this drain: {why}");
            unseen.push(not_observed("sensor", why));
        }
        (SensorState::Proven { .. }, None) => {}
    }
    if !evidence.sensor.strategy().sees_closed_ports() && matches!(evidence.sensor, SensorState::Proven { .. }) {
        unseen.extend(watched.ports().filter(|(_, entry)| !entry.open).map(|(port, _)| closed(port)));
    }
    if let Some(surplus) = drain.blind {
        unseen.push(not_observed("sensor", blind(surplus)));
    }
    if let Err(why) = &evidence.sockets {
        unseen.push(not_observed("sockets", why.clone()));
    }
    if let Err(why) = &evidence.namespace {
        unseen.push(not_observed("counters", why.clone()));
    }
    // Nothing is said of listeners and addresses that could not be read.
    if watched.ports().next().is_none() && evidence.sockets.is_ok() {
        let why = "nothing listens on a port that can be reached from outside the pod".to_owned();
        unseen.push(not_observed("listener", why));
    }
    let addresses_read = !evidence.not_observed.iter().any(|entry| entry.what == "address");
    if addresses_read && !Family::ALL.iter().any(|family| *evidence.families.get(*family)) {
        unseen.push(not_observed("address", "the pod has no address but loopback and link-local ones".to_owned()));
    }
    unseen.sort();
    unseen.dedup();
    unseen
}

/// Why a blind sensor is known to be.
pub(super) fn blind(surplus: u64) -> String {
    format!("{surplus} more handshakes were completed in this namespace than SYNs were seen")
}

/// Routing is not watched.
fn routing(why: NoRouting) -> NotObserved {
    match why {
        NoRouting::Off => not_observed("routing", "routing.enabled is false".to_owned()),
        NoRouting::NoCluster => {
            let why = "this is no pod of a cluster: there is neither a service account nor KUBECONFIG".to_owned();
            not_observed("api", why)
        }
    }
}

/// A SYN for a closed port meets no socket, and such a sensor sees none.
fn closed(port: Port) -> NotObserved {
    let why = "nothing listens on it, and the sensor sees a SYN only where it meets a listener".to_owned();
    NotObserved { what: "listener".to_owned(), name: Some(port.to_string()), family: None, why }
}

/// S5: nobody knows that the pod is terminating.
fn termination(why: &str) -> NotObserved {
    not_observed("termination", format!("whether the pod is terminating is not known: {why}"))
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
        routing_ms: held(Condition::Routing),
        load_balancer_ms: held(Condition::LoadBalancer),
    }
}

/// From where counts are told.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    /// What had been counted before; `None`: counts are told since the port is counted.
    pub(super) before: Option<&'a CountsBefore>,
    pub(super) since: Since,
    pub(super) quiet_period: Duration,
}

/// Every watched listener, per family that the pod has an address in.
pub(super) fn listeners(watched: &Watched, evidence: &Evidence, from: From<'_>) -> Vec<Listener> {
    let of = |(port, entry): (Port, &WatchedPort)| Listener {
        port,
        closed_at_ms: from.since.drain_started.and_then(|start| entry.closed_at.map(|at| millis(at.since(start)))),
        families: evidence.asked_families().map(|family| family_counts(port, family, evidence, from)).collect(),
    };
    watched.ports().map(of).collect()
}

fn family_counts(port: Port, family: Family, evidence: &Evidence, from: From<'_>) -> FamilyCounts {
    let zero = CountsBefore::default();
    let counts = from.before.unwrap_or(&zero).since(port, family, evidence);
    let last = evidence.attempts.get(&port).and_then(|attempts| attempts.families.get(family).last());
    let last = last.max(evidence.unattributed.get(family).last);
    let quiet_from = quiet::quiet_from(port, family, evidence, from.since);
    let strategy = evidence.sensor.strategy();
    let tells = |class| strategy.tells(class) && port.protocol().tells(class);
    let count = |class| counts.filter(|_| tells(class)).map(|counts| counts.get(class));
    FamilyCounts {
        family,
        new: count(Class::New),
        retransmit: count(Class::Retransmit),
        refused: count(Class::Refused),
        join: count(Class::Join),
        opaque: count(Class::Opaque),
        stray: count(Class::Stray),
        // Where none was told apart, nothing shows that they can be: kubelet's are in `new` then.
        probe: count(Class::Probe).filter(|count| *count > 0),
        ignored: count(Class::Ignored),
        late: None,
        last_attempt_ago_ms: last.map(|last| last.age_at(evidence.taken_at).as_millis()),
        quiet: quiet_from.is_some_and(|from_then| from_then.age_at(evidence.taken_at).reaches(from.quiet_period)),
    }
}
