//! Reports to try things on, and the recorder.

use std::collections::BTreeMap;

use super::{
    Recorder, Report,
    course::{About, Attempts, Entry, FORMAT, Held, Lane, LeftOut, NodesAt, Pod},
    recorder::Standing,
};
use crate::{
    cli::words::tests::{listener_of, verdict_of},
    core::{
        clock::Monotonic,
        cluster::{PortName, ServiceName},
        event::{Attempts as OfClass, ByFamily, CallerId, PortAttempts, Tally as Count},
        journal::Transition,
        listener::{Family, Port},
        verdict::{Condition, Nodes, Reason},
    },
};

/// A report of so many listeners, over both families, with so many bins.
pub(crate) fn report_of(reason: Reason, listeners: u16, bins: u64) -> Report {
    let mut verdict = verdict_of(reason);
    verdict.listeners = (0..listeners).map(|number| listener_of(8000 + number)).collect();
    verdict.duration_ms = bins * 100;
    let lane = |number: u16, family| Lane {
        port: Port::try_from(8000 + number).unwrap(),
        family,
        counting: (0..bins).map(|bin| (bin * 7 + u64::from(number)) % 13).collect(),
        refused: if number == 0 { vec![0, 0, 1] } else { Vec::new() },
    };
    let lanes = (0..listeners).flat_map(|number| Family::ALL.map(|family| lane(number, family))).collect();
    let nodes = |at_ms, confirmed| NodesAt {
        at_ms,
        nodes: Nodes { total: 6, confirmed, pending: 6 - confirmed, ..Nodes::default() },
    };
    let entry = |at_ms, about, what: &str| Entry { at_ms, about, what: what.to_owned() };
    Report {
        format: FORMAT,
        agent: "0.1.0".to_owned(),
        pod: Pod { namespace: "shop".to_owned(), name: "web-1".to_owned(), node: "node-a".to_owned() },
        verdict,
        conditions: vec![
            Held { condition: Condition::Quiet, spans: vec![(0, bins * 100)] },
            Held { condition: Condition::Routing, spans: vec![(0, bins * 20), (bins * 30, bins * 80)] },
        ],
        attempts: Attempts { every_ms: 100, lanes },
        nodes: vec![nodes(120, 0), nodes(bins * 50, 4), nodes(bins * 80, 6)],
        entries: vec![
            entry(0, About::Hook, "caller 0 called the hook: the drain starts"),
            entry(90, About::Service, "Service web, port http, over IPv4 leads to the pod no longer"),
            entry(120, About::Server, "the server in the pod was told: announce"),
            entry(bins * 100, About::Hook, "the drain ended: quiet"),
        ],
        left_out: LeftOut::default(),
    }
}

fn at(millis: u64) -> Monotonic {
    Monotonic::from_nanos((1000 + millis) * 1_000_000)
}

fn totals(count: u64) -> BTreeMap<Port, PortAttempts> {
    let v4 = OfClass::of(|class| Count { count: if class as usize == 0 { count } else { 0 }, last: None });
    let families = ByFamily { v4, v6: OfClass::default() };
    [(Port::try_from(80).unwrap(), PortAttempts { watched_since: at(0), families })].into()
}

#[test]
fn a_course_has_what_held_and_what_came_and_what_happened() {
    let mut recorder = Recorder::new(Pod::default());
    assert_eq!(recorder.next_sample(), None, "at rest nothing is sampled");
    let started = at(0);
    recorder.holding(started, &[Condition::Quiet, Condition::Routing], at(0));
    recorder.happened(at(0), &Transition::DrainStarted(CallerId(0)));
    let route = |name: &str| (ServiceName("web".to_owned()), PortName(name.to_owned()), Family::V4);
    for name in ["http", "admin"] {
        let (service, port, family) = route(name);
        recorder.happened(at(20), &Transition::Routed(service, port, family));
    }
    assert_eq!(
        recorder.routed().collect::<Vec<_>>(),
        ["Service web, port admin, over IPv4", "Service web, port http, over IPv4"]
    );
    recorder.sample(&totals(5), [Family::V4], at(1));
    assert_eq!(recorder.next_sample(), Some(at(101)));
    recorder.sample(&totals(8), [Family::V4], at(350));
    recorder.nodes(Nodes { pending: 3, ..Nodes::default() }, at(30));
    recorder.nodes(Nodes { pending: 3, ..Nodes::default() }, at(40));
    recorder.nodes(Nodes { confirmed: 3, ..Nodes::default() }, at(900));
    for name in ["http", "admin"] {
        let (service, port, family) = route(name);
        recorder.happened(at(400), &Transition::Withdrawn(service, port, family));
    }
    assert_eq!((recorder.routed().count(), recorder.withdrawn()), (0, Some(at(400))));
    recorder.holding(started, &[Condition::Quiet], at(900));
    assert_eq!(recorder.standing(Condition::Routing), Standing { holds: false, since_ms: 900 });
    assert_eq!(recorder.standing(Condition::Quiet), Standing { holds: true, since_ms: 0 });
    assert!(recorder.reports(None).is_empty(), "it has not ended");

    let mut verdict = verdict_of(Reason::Quiet);
    verdict.duration_ms = 2350;
    recorder.ended(verdict.clone());
    let mut completed = verdict;
    completed.late = Some(crate::core::verdict::Late::default());
    let [report] = &recorder.reports(Some(completed))[..] else { panic!("one report") };
    let held =
        |condition| report.conditions.iter().find(|held| held.condition == condition).map(|held| &held.spans[..]);
    assert_eq!(held(Condition::Quiet), Some(&[(0, 2350)][..]));
    assert_eq!(held(Condition::Routing), Some(&[(0, 900)][..]));
    assert_eq!(held(Condition::Handshakes), None, "it never held");
    assert_eq!(report.attempts.lanes.len(), 1, "of a family in which the pod has no address nothing is told");
    assert_eq!(report.attempts.lanes[0].counting, [0, 0, 0, 3]);
    assert_eq!(report.nodes.iter().map(|nodes| nodes.at_ms).collect::<Vec<_>>(), [30, 900]);
    assert!(report.verdict.late.is_some());
    assert_eq!(report.entries.first().map(|entry| (entry.at_ms, entry.about)), Some((0, About::Hook)));
    // What comes for a while after the end is of the drain too.
    assert!(recorder.next_sample().is_some());
    recorder.sample(&totals(10), [Family::V4], at(2900));
    assert_eq!(recorder.reports(None)[0].sum().iter().sum::<u64>(), 5);
    recorder.sample(&totals(11), [Family::V4], at(62_400));
    assert_eq!(recorder.next_sample(), None);
}

#[test]
fn a_course_stays_small_whatever_comes() {
    let mut recorder = Recorder::new(Pod::default());
    for drain in 0..9 {
        let started = at(drain * 100_000);
        for round in 0..5000 {
            let now = started + std::time::Duration::from_millis(round * 10);
            let holding: &[Condition] = if round % 2 == 0 { &[Condition::Quiet] } else { &[] };
            recorder.holding(started, holding, now);
            recorder.nodes(Nodes { pending: round, ..Nodes::default() }, now);
            recorder.happened(now, &Transition::CallerJoined(CallerId(round)));
            recorder.sample(&totals(round), [Family::V4], now);
        }
        recorder.ended(verdict_of(Reason::Bound));
    }
    let reports = recorder.reports(None);
    assert_eq!(reports.len(), 4);
    for report in reports {
        let size = serde_json::to_string(&report).unwrap().len();
        assert!(size < 60_000, "{size}");
        assert!(report.left_out.entries > 4000 && report.left_out.nodes > 4000 && report.left_out.spans > 2000);
        let [held] = &report.conditions[..] else { panic!("one condition") };
        assert!(held.spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{held:?}");
        assert_eq!(report.entries.last().unwrap().what, "caller 4999 joined the drain", "the newest stays");
    }
}
