//! S7: SYNs after the verdict are told by what became of them, with how long they were watched for.

use std::time::Duration;

use lastsyn_tests::{
    AgentConfig, Counted, Outcome, Pair, Server, ServerConfig, await_condition, connect_once, counted::PORT,
    monotonic_now,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

fn connect(counted: &Counted, times: usize, outcome: &Outcome) {
    for target in counted.pair.targets(PORT).into_iter().cycle().take(times) {
        assert_eq!(connect_once(&counted.pair.client, target, SOON).outcome, *outcome);
    }
}

#[test]
fn of_25_syns_after_the_verdict_10_are_refused_and_reported_as_exactly_that() {
    let linger = Duration::from_millis(1500);
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "500ms")
        .env("LASTSYN_AFTER_END_LINGER", format!("{}ms", linger.as_millis()));
    let counted = Counted::with(Pair::new().unwrap(), config).unwrap();
    let (agent, pair) = (&counted.agent, &counted.pair);
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let by_it = Outcome::Served { by: "server".to_owned() };
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    connect(&counted, 4, &by_it);
    let answer = call.wait(SOON).unwrap();
    assert_eq!((&answer.verdict["reason"], &answer.verdict["late"]), (&"quiet".into(), &Value::Null));

    connect(&counted, 15, &by_it);
    let so_far = agent.status_of_now().unwrap()["verdict"]["late"].clone();
    assert_eq!((&so_far["taken"], &so_far["refused"]), (&15.into(), &0.into()), "{so_far}");
    assert_eq!(so_far["observedForMs"], 0, "{so_far}");
    assert!(!agent.process().text(lastsyn_tests::process::Stream::Error).contains("too short"));
    server.close().unwrap();
    let closed_at = monotonic_now();
    connect(&counted, 10, &Outcome::Refused);

    let status = agent.status_of_now().unwrap();
    let late = &status["verdict"]["late"];
    let seen = ["taken", "refused", "opaque"].map(|name| late[name].as_u64().unwrap());
    assert_eq!(seen, [15, 10, 0], "{status}");
    assert!(late["lastAfterMs"].is_u64(), "{status}");
    let per_family: Vec<u64> = status["verdict"]["listeners"][0]["families"]
        .as_array()
        .unwrap()
        .iter()
        .map(|counts| counts["late"].as_u64().unwrap())
        .collect();
    assert_eq!(per_family, [13, 12], "{status}");
    assert_eq!(status["verdict"]["listeners"][0]["families"][0]["new"], 2, "as it was answered: {status}");
    let metrics = agent.metrics().unwrap();
    for sample in ["lastsyn_late_attempts{outcome=\"taken\"} 15\n", "lastsyn_late_attempts{outcome=\"refused\"} 10\n"] {
        assert!(metrics.contains(sample), "no {sample} in {metrics}");
    }
    agent.process().wait_for_line("it was too short for some client", SOON).unwrap();

    // What the agent says when it leaves.
    agent.terminate().unwrap();
    agent.wait(SOON).unwrap();
    let stayed = Duration::from_nanos(monotonic_now() - closed_at);
    assert!(stayed >= linger, "it left {stayed:?} after the listener had closed");
    let line = agent.process().wait_for_line("what came after the drain", SOON).unwrap().text;
    let line: Value = serde_json::from_str(&line).unwrap();
    let report: Value = serde_json::from_str(line["report"].as_str().unwrap()).unwrap();
    let last = &report["verdict"];
    assert_eq!((&last["late"]["taken"], &last["late"]["refused"]), (&15.into(), &10.into()), "{last}");
    let observed = Duration::from_millis(last["late"]["observedForMs"].as_u64().unwrap());
    assert!(observed >= linger && observed <= stayed, "{observed:?} of {stayed:?}");
}

#[test]
fn nothing_after_the_verdict_is_reported_as_nothing() {
    let config = AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "300ms");
    let counted = Counted::with(Pair::new().unwrap(), config).unwrap();
    let server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    counted.agent.drain().unwrap().wait(SOON).unwrap();
    server.close().unwrap();
    // Not a SYN, and one to another port.
    connect_once(&counted.pair.client, counted.pair.targets(9000)[0], SOON);
    await_condition("some time without a listener", SOON, || {
        let late = counted.agent.status_of_now().ok()?["verdict"]["late"].clone();
        let seen = ["taken", "refused", "opaque"].map(|name| late[name].as_u64().unwrap());
        assert_eq!((seen, &late["lastAfterMs"]), ([0; 3], &Value::Null), "{late}");
        (late["observedForMs"].as_u64()? > 200).then_some(())
    })
    .unwrap();
    let metrics = counted.agent.metrics().unwrap();
    assert!(metrics.contains("lastsyn_late_attempts{outcome=\"refused\"} 0\n"), "{metrics}");
}
