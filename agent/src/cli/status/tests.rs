//! The status in words: one look, and the screen that is drawn again.

use super::{
    screen::{Screen, frame},
    *,
};
use crate::{
    cli::words::tests::{listener_of, source_of, verdict_of},
    core::verdict::{Condition, Reason, Strategy},
    server::status::{ConditionStatus, DrainStatus, PassedOver, SensorStatus},
};

fn status() -> Status {
    let (why, interfaces) = (None, vec!["lo".to_owned(), "eth0".to_owned()]);
    Status {
        version: "0.1.0".to_owned(),
        uptime_ms: 12_300,
        state: State::Serving,
        sensor: SensorStatus {
            strategy: Strategy::Tcx,
            healthy: true,
            scoped: true,
            why,
            blind_ms: Some(0),
            interfaces,
            passed_over: Vec::new(),
            probes: crate::sensor::ProbeStatus::default(),
        },
        listeners: vec![listener_of(80), listener_of(8443)],
        connections: None,
        drain: None,
        sources: None,
        drains_ended: 0,
        verdict: None,
        journal: Vec::new(),
    }
}

#[test]
fn shows_listeners_in_columns() {
    assert_eq!(
        render(&status()),
        "agent    0.1.0, serving, up 12.3 s\n\
         sensor   tcx, sees everything, on lo, eth0\n\
         drain    none under way, 0 ended\n\
         verdict  none yet\n\
         \n\
         PORT  FAMILY  NEW  RETRANSMIT  REFUSED  JOIN  OPAQUE  STRAY  PROBE  IGNORED  LAST ATTEMPT  QUIET\n\
         80    IPv4    12   0           0        0     0       0      -      0        2.004 s ago   yes\n\
         80    IPv6    0    0           0        0     0       0      -      0        never         yes\n\
         8443  IPv4    12   0           0        0     0       0      -      0        2.004 s ago   yes\n\
         8443  IPv6    0    0           0        0     0       0      -      0        never         yes"
    );
}

#[test]
fn shows_who_sends_while_a_drain_runs() {
    let list = vec![source_of("10.0.0.2", Some("b"), Some(14)), source_of("203.0.113.0/24", None, None)];
    let text = render(&Status { sources: Some(Sources { list, more: 3, forgotten: 7 }), ..status() });
    let shown = "\nsources  node b (10.0.0.2) to port 80 over IPv4: 19, 14 since the withdrawal, the last 0.204 s ago\n         \
                 203.0.113.0/24 to port 80 over IPv4: 19, the last 0.204 s ago\n         and 3 more\n         \
                 7 were forgotten, as more came than are kept\nverdict";
    assert!(text.contains(shown), "{text}");
    let nobody = render(&Status { sources: Some(Sources::default()), ..status() });
    assert!(nobody.contains("\nsources  nobody so far\n"), "{nobody}");
}

#[test]
fn what_nothing_counts_is_not_shown_as_none() {
    let mut status = status();
    let mut listener = listener_of(80);
    listener.families.truncate(1);
    (listener.families[0].new, listener.families[0].opaque) = (None, None);
    status.listeners = vec![listener];
    let text = render(&status);
    assert!(text.contains("80    IPv4    -    0           0        0     -"), "{text}");
}

#[test]
fn shows_what_the_sensor_cannot_see_and_what_better_ones_lack() {
    let mut status = status();
    status.sensor.strategy = Strategy::Cgroup;
    assert!(render(&status).contains("cgroup, sees everything that meets a listener"), "{}", render(&status));
    status.sensor.strategy = Strategy::Packet;
    status.sensor.scoped = false;
    let why = "the container lacks BPF".to_owned();
    status.sensor.passed_over = vec![PassedOver { strategy: Strategy::Tcx, why }];
    let text = render(&status);
    assert!(text.contains("packet, unscoped: does not tell the pod's SYNs from others of the node"), "{text}");
    assert!(text.contains("\n         not tcx: the container lacks BPF\n"), "{text}");
}

#[test]
fn shows_what_holds_a_drain_and_how_the_last_one_ended() {
    let drain = DrainStatus {
        started_at: "2026-11-29T20:44:09Z".to_owned(),
        elapsed_ms: 1500,
        max_wait_ms: 20_000,
        callers: 2,
        holding: vec![Condition::Handshakes],
        conditions: Vec::new(),
        nodes: crate::core::verdict::Nodes::default(),
    };
    let mut status = Status { state: State::Draining, drain: Some(drain), ..status() };
    status.verdict = Some(verdict_of(Reason::Quiet));
    status.sensor.healthy = false;
    status.sensor.why = Some("no clsact".to_owned());
    status.sensor.blind_ms = Some(70);
    let text = render(&status);
    assert!(text.contains("drain    1.5 s of at most 20 s, 2 callers, held by handshakes under way\n"), "{text}");
    assert!(text.contains("verdict  quiet after 4.312 s"), "{text}");
    assert!(text.contains("tcx, not known to see everything (no clsact), on lo, eth0, 0.07 s in all"), "{text}");
}

fn condition(rule: &str, condition: Condition, left_ms: Option<u64>, holds: bool) -> ConditionStatus {
    ConditionStatus {
        rule: rule.to_owned(),
        condition,
        holds,
        since_ms: 1500,
        left_ms,
        waits_for: "2s of quiet; last: 80 over IPv4".to_owned(),
    }
}

fn draining(listeners: u16) -> Status {
    let drain = DrainStatus {
        started_at: "2026-11-29T20:44:09Z".to_owned(),
        elapsed_ms: 4300,
        max_wait_ms: 20_000,
        callers: 1,
        holding: vec![Condition::Quiet],
        conditions: Condition::ALL
            .into_iter()
            .zip(["E1", "E2", "E2a", "E3", "E4", "E5", "E6"])
            .map(|(of, rule)| condition(rule, of, (of == Condition::Quiet).then_some(1200), of == Condition::Quiet))
            .collect(),
        nodes: crate::core::verdict::Nodes { total: 6, confirmed: 4, pending: 2, ..Default::default() },
    };
    let connections = crate::server::status::Connections {
        port: 8000,
        family: crate::core::listener::Family::V4,
        handshakes: 3,
        established: 240,
        accept_queue: Some(7),
    };
    let list = vec![source_of("10.0.0.2", Some("b"), Some(14)); 9];
    Status {
        state: State::Draining,
        listeners: (0..listeners).map(|number| listener_of(8000 + number)).collect(),
        connections: Some(vec![connections]),
        drain: Some(drain),
        sources: Some(Sources { list, more: 3, forgotten: 0 }),
        verdict: Some(verdict_of(Reason::Quiet)),
        ..status()
    }
}

const SCREEN: Screen = Screen { rows: 24, columns: 80, colour: false };

#[test]
fn the_screen_has_every_condition_with_what_it_waits_for() {
    let now = draining(2);
    let mut before = now.clone();
    before.uptime_ms -= 2000;
    before.listeners[0].families[0].new = Some(2);
    let text = frame(&now, Some(&before), SCREEN).join("\n");
    for shown in [
        "lastsyn 0.1.0  draining 4.3 s of at most 20 s, 1 caller",
        "E2   new connections  holds 1.5 s, 1.2 s left  2s of quiet; last: 80 over IPv4",
        "E5   routing          met 1.5 s                2s of quiet",
        "nodes  4 of 6 confirmed, 0 assumed, 0 waited for, 2 pending, 0 show nothing",
        "8000  IPv4    5.0    12   0        2.0 s  7      3           240    yes",
        "8001  IPv6    0.0    0    0        never  -      -           -      yes",
        "who still knocks",
        "node b (10.0.0.2) to port 80 over IPv4: 19, 14 since the withdrawal",
        "and 9 more",
    ] {
        assert!(text.contains(shown), "no {shown}\n{text}");
    }
}

#[test]
fn the_screen_fits_whatever_there_is_to_show() {
    for screen in
        [SCREEN, Screen { rows: 10, columns: 40, colour: false }, Screen { rows: 60, columns: 200, colour: false }]
    {
        for status in [draining(61), draining(1), status(), Status { drain: None, ..draining(61) }] {
            let lines = frame(&status, None, screen);
            assert!(lines.len() <= screen.rows, "{} lines\n{}", lines.len(), lines.join("\n"));
            assert!(lines.iter().all(|line| line.chars().count() <= screen.columns), "{lines:#?}");
        }
    }
    let text = frame(&draining(61), None, SCREEN).join("\n");
    assert!(text.contains("more listeners; lastsyn status shows all"), "{text}");
}

#[test]
fn colours_are_only_where_they_are_wanted_and_change_no_word() {
    let plain = frame(&draining(2), None, SCREEN);
    let coloured = frame(&draining(2), None, Screen { colour: true, ..SCREEN });
    assert!(plain.iter().all(|line| !line.contains('\u{1b}')));
    assert!(coloured.iter().any(|line| line.contains("\u{1b}[33m")), "what holds is yellow: {coloured:#?}");
    let stripped = coloured.iter().map(|line| {
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap().to_owned();
        first + &parts.map(|part| part.split_once('m').unwrap().1).collect::<String>()
    });
    assert!(stripped.eq(plain));
}

#[test]
fn one_look_shows_the_conditions_too() {
    let text = render(&draining(1));
    assert!(text.contains("\n         E2   new connections  holds 1.5 s, 1.2 s left  2s of quiet"), "{text}");
}
