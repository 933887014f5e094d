//! What is made of the counts.

use super::{find::observations, text, *};
use crate::core::event::{Attempts, ByFamily, Connections, HandshakeId, NamespaceCounters, Sockets, Tally};

fn at(millis: u64) -> Monotonic {
    Monotonic::from_nanos((1000 + millis) * 1_000_000)
}

/// `new` and `refused` of port 80 over IPv4, the last of them at a time.
fn evidence(taken_at: u64, new: u64, refused: u64, last: Option<u64>) -> Evidence {
    let v4 = Attempts::of(|class| {
        let count = match class {
            Class::New => new,
            Class::Refused => refused,
            // Of these nothing is told: they hold nothing.
            Class::Probe => 99,
            _ => 0,
        };
        Tally { count, last: last.filter(|_| count > 0).map(at) }
    });
    let families = ByFamily { v4, v6: Attempts::default() };
    Evidence {
        taken_at: at(taken_at),
        namespace: Err("not read".to_owned()),
        sensor: SensorState::Proven { strategy: Strategy::Tcx, since: at(0) },
        blind: Duration::ZERO,
        attempts_anywhere: None,
        attempts: [(Port::try_from(80).unwrap(), PortAttempts { watched_since: at(0), families })].into(),
        unattributed: ByFamily::default(),
        families: ByFamily { v4: true, v6: false },
        sockets: Ok(Sockets::default()),
        passive_opens_after: None,
        not_observed: Vec::new(),
    }
}

fn known() -> Known {
    Known { quiet_period: Duration::from_secs(2), ..Known::default() }
}

fn before(new: u64) -> Before {
    Before::new(&evidence(1000, new, 0, Some(900)), "2026-12-01T00:00:00Z".to_owned(), Begun::Signal)
}

#[test]
fn what_came_before_is_not_told_and_what_came_after_is() {
    let seen = before(7).since(&evidence(11_000, 10, 2, Some(4200)), known());
    let lane =
        Lane { port: Port::try_from(80).unwrap(), family: Family::V4, attempts: 5, refused: 2, last_after_ms: 3200 };
    assert_eq!(seen.listeners, [lane]);
    assert_eq!((seen.observed_for_ms, seen.last_after_ms, seen.stopped), (10_000, Some(3200), true));
    assert_eq!(seen.recommended, Some(Recommended { sleep_ms: 6000, max_wait_ms: 12_000 }));
    let words = text::sentence(&seen);
    assert_eq!(
        words,
        "new connections kept coming for 3.2 s after SIGTERM, the last one to port 80 over IPv4; watched for 10 s; a hook \
         that only sleeps needs `sleep 6`, a drain `maxWait: 12s`"
    );

    let none = before(7).since(&evidence(11_000, 7, 0, Some(900)), known());
    assert_eq!((none.listeners.len(), none.last_after_ms, none.stopped), (0, None, true));
    assert_eq!(none.recommended, Some(Recommended { sleep_ms: 2000, max_wait_ms: 10_000 }));
    assert!(text::sentence(&none).starts_with("no new connection was seen after SIGTERM"));
}

#[test]
fn where_they_had_not_stopped_it_is_said_to_be_a_lower_bound() {
    let seen = before(0).since(&evidence(5000, 4, 0, Some(4100)), known());
    assert!(!seen.stopped);
    assert!(text::sentence(&seen).contains("at the least, a hook that only sleeps needs `sleep 6`"), "{seen:?}");
    let short = before(0).since(&evidence(1500, 0, 0, None), known());
    assert!(!short.stopped, "half a second without any says nothing");
    assert!(text::together(&[seen, short]).unwrap().contains("in 2 of them connections had not stopped"));
}

#[test]
fn what_the_sensor_may_have_missed_is_named_and_counters_recommend_nothing() {
    let why = |sensor, blind| {
        let seen = Evidence { sensor, blind, ..evidence(9000, 1, 0, Some(3000)) };
        let seen = before(0).since(&seen, known());
        let why: Vec<_> = seen.not_observed.iter().map(|missed| format!("{}: {}", missed.what, missed.why)).collect();
        (why, seen)
    };
    let proven = |strategy, since| SensorState::Proven { strategy, since: at(since) };
    let none = Duration::ZERO;
    assert!(why(proven(Strategy::Tcx, 0), none).0.is_empty());
    let late = why(proven(Strategy::Tcx, 2000), Duration::from_millis(30)).0;
    assert!(late[0].starts_with("sensor: it is known") && late[1].contains("for 30 ms"), "{late:?}");
    let unproven = SensorState::Unproven { strategy: Strategy::Tcx, why: "it went away".to_owned() };
    assert_eq!(why(unproven, none).0, ["sensor: it went away"]);
    let (told, seen) = why(proven(Strategy::Counters, 0), none);
    assert_eq!((told.len(), seen.recommended, seen.stopped), (1, None, false));
    assert!(text::sentence(&seen).ends_with("nothing is recommended"));
    assert_eq!(text::together(&[seen]), None);
}

#[test]
fn s3_a_handshake_without_a_syn_is_told_of() {
    let with = |evidence: Evidence, completed, anywhere| Evidence {
        namespace: Ok(NamespaceCounters { passive_opens: completed, ..NamespaceCounters::default() }),
        attempts_anywhere: Some(anywhere),
        passive_opens_after: Some(completed),
        ..evidence
    };
    let mut first = with(evidence(1000, 0, 0, None), 10, 20);
    let handshakes = [(HandshakeId(1), Port::try_from(80).unwrap())].into();
    let connections = Some(Connections { handshakes, established: None });
    first.sockets = Ok(Sockets { connections, ..Sockets::default() });
    let before = Before::new(&first, String::new(), Begun::OwnHook);
    let missed = |completed, anywhere| {
        before.since(&with(evidence(9000, 3, 0, Some(3000)), completed, anywhere), known()).not_observed
    };
    assert!(missed(14, 23).is_empty(), "three SYNs, and one from before");
    assert_eq!(missed(15, 23)[0].why, "1 handshakes were completed whose SYN it did not see");
}

#[test]
fn it_is_found_whatever_is_around_it() {
    let seen = before(0).since(&evidence(9000, 1, 0, Some(3000)), known());
    let json = serde_json::to_string(&seen).unwrap();
    let line = serde_json::json!({"level": "INFO", "message": "seen", "observation": json}).to_string();
    for file in [
        serde_json::json!({"reports": [], "observation": seen}).to_string(),
        format!("no {{ JSON\n2026-01-01T00:00:00Z stderr F {line}\n"),
        serde_json::json!({"log": line}).to_string(),
        format!("2026-01-01T00:00:00Z  INFO lastsyn: seen observation={json:?}"),
    ] {
        assert_eq!(observations(&file), std::slice::from_ref(&seen), "{file}");
    }
    assert!(observations("nothing").is_empty() && observations("{\"observation\": null}").is_empty());
    let shown = text::text(&seen);
    assert!(shown.contains("80 IPv4") && shown.contains("began 2026-12-01T00:00:00Z"), "{shown}");
}
