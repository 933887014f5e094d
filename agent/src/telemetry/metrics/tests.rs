use super::*;
use crate::{
    core::{
        confirm::Tally,
        listener::{Family as IpFamily, Port},
        verdict::{FamilyCounts, Listener, Strategy},
    },
    server::status::{SensorStatus, Status},
};

fn look(new: Option<u64>) -> Look {
    let sensor = SensorStatus {
        strategy: Strategy::Tcx,
        healthy: true,
        why: None,
        blind_ms: Some(2500),
        interfaces: Vec::new(),
        passed_over: Vec::new(),
        probes: crate::sensor::ProbeStatus::default(),
        scoped: true,
    };
    let counts = FamilyCounts {
        family: IpFamily::V6,
        new,
        retransmit: new.map(|new| new + 1),
        refused: new.map(|new| new + 2),
        join: new.map(|new| new + 3),
        opaque: new.map(|new| new + 4),
        stray: new.map(|new| new + 5),
        probe: None,
        ignored: new.map(|new| new + 6),
        late: None,
        last_attempt_ago_ms: Some(1500),
        quiet: false,
    };
    let listener = Listener { port: Port::try_from(80).unwrap(), closed_at_ms: None, families: vec![counts] };
    let status = Status {
        version: String::new(),
        uptime_ms: 0,
        state: State::Serving,
        sensor,
        listeners: Vec::new(),
        connections: None,
        drain: None,
        sources: None,
        drains_ended: 0,
        verdict: None,
        journal: Vec::new(),
    };
    Look { status, totals: vec![listener], evidence: None, nodes: Tally::default(), runs: Vec::new(), left_out: 0 }
}

#[test]
fn what_nothing_counts_has_no_sample() {
    let counted = Metrics::new().text(&look(Some(7)), None);
    let classes = ["new", "retransmit", "refused", "join", "opaque", "stray", "ignored"];
    for (count, class) in (7..).zip(classes) {
        let sample = format!("lastsyn_attempts_total{{port=\"80\",family=\"IPv6\",class=\"{class}\"}} {count}\n");
        assert!(counted.contains(&sample), "no {sample} in {counted}");
    }
    assert!(!counted.contains("class=\"probe\""), "{counted}");
    let age = r#"lastsyn_last_attempt_age_seconds{port="80",family="IPv6"} 1.5"#;
    assert!(counted.contains(age), "{counted}");
    assert!(counted.contains("lastsyn_sensor_blind_seconds 2.5\n"), "{counted}");
    let uncounted = Metrics::new().text(&look(None), None);
    assert!(!uncounted.contains("lastsyn_attempts_total{"), "{uncounted}");
}
