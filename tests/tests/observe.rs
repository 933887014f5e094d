//! `mode: observe`: nobody is held and nobody told; for how long new connections kept coming after the pod's termination had begun is
//! measured and logged, with what it comes to.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{fs, net::TcpListener, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, Connection, Outcome, Pair, Server, ServerConfig, agent, await_condition, connect_once,
    monotonic_now, process::Stream,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const QUIET: u64 = 500;

fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_MODE", "observe")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{QUIET}ms"))
        .env("LASTSYN_POD_NAME", "web-1")
}

/// What an agent answers of it.
fn observation(agent: &Agent) -> Value {
    agent.get("/v1/report").unwrap().json().unwrap()["observation"].clone()
}

/// What it has logged of it, in its one line.
fn logged(agent: &Agent) -> (String, Value) {
    let log = agent.process().text(Stream::Error);
    let lines: Vec<Value> = log
        .lines()
        .filter(|line| line.contains("\"observation\":"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    let observation = serde_json::from_str(lines[0]["observation"].as_str().unwrap()).unwrap();
    (lines[0]["message"].as_str().unwrap().to_owned(), observation)
}

/// A listener and family of an observation.
fn lane<'a>(observation: &'a Value, family: &str) -> &'a Value {
    let lanes = observation["listeners"].as_array().unwrap();
    lanes.iter().find(|lane| lane["family"] == family && lane["port"] == 80).unwrap_or(&Value::Null)
}

fn millis_since(moment: u64) -> u64 {
    (monotonic_now() - moment) / 1_000_000
}

#[test]
fn after_sigterm_it_measures_until_the_listener_closes_and_recommends_what_was_enough() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    // Whoever told the server anything would tell it here.
    let told = pair.pod.run(|| TcpListener::bind("127.0.0.1:9999")).unwrap();
    told.set_nonblocking(true).unwrap();
    let config = config()
        .env("LASTSYN_PROXY_KIND", "http")
        .env("LASTSYN_PROXY_HTTP_ANNOUNCE", "{url: http://127.0.0.1:9999/drain}")
        .env("LASTSYN_READINESS_FAIL_AFTER", "0s");
    let agent = Agent::start(&pair.pod, config).unwrap();
    let connect = |at: usize| {
        assert_eq!(Connection::open(&pair.client, pair.targets(80)[at], SOON).unwrap().request().unwrap(), "server");
    };
    [0, 0, 1, 1].into_iter().for_each(connect);
    assert_eq!(observation(&agent), Value::Null, "nothing has begun");

    // No hook.
    let answer = agent.drain().unwrap().wait(SOON).unwrap();
    assert_eq!(answer.status, 409, "{answer:?}");
    let hook = agent.hook(["--max-wait", "1s"]).unwrap();
    hook.wait_for_success(SOON).unwrap();
    assert!(hook.text(Stream::Error).contains("mode is observe"), "{}", hook.report());
    assert_eq!(agent.status().unwrap()["state"], "serving");

    let asked = monotonic_now();
    agent.terminate().unwrap();
    agent.process().wait_for_line("for how long new connections keep coming", SOON).unwrap();
    let begun = monotonic_now();
    [0, 0, 0].into_iter().for_each(connect);
    await_condition("a while", SOON, || millis_since(begun) >= 1200).unwrap();
    let before_last = (monotonic_now() - begun) / 1_000_000;
    [1, 1].into_iter().for_each(connect);
    let after_last = millis_since(asked);
    await_condition("a quiet period", SOON, || {
        let seen = observation(&agent);
        let last = seen["lastAfterMs"].as_u64()?;
        (seen["observedForMs"].as_u64()? >= last + QUIET).then_some(())
    })
    .unwrap();
    server.close().unwrap();
    agent.process().wait_for_success(Duration::from_secs(3)).unwrap();

    let (message, seen) = logged(&agent);
    assert_eq!(
        (&lane(&seen, "IPv4")["attempts"], &lane(&seen, "IPv6")["attempts"]),
        (&3.into(), &2.into()),
        "{seen:#}"
    );
    let last = lane(&seen, "IPv6")["lastAfterMs"].as_u64().unwrap();
    assert!(before_last <= last && last <= after_last, "{before_last} to {after_last} ms: {seen:#}");
    assert!(lane(&seen, "IPv4")["lastAfterMs"].as_u64().unwrap() < 1200, "{seen:#}");
    assert_eq!((&seen["lastAfterMs"], &seen["stopped"], &seen["by"]), (&last.into(), &true.into(), &"signal".into()));
    assert_eq!(seen["notObserved"], Value::Array(Vec::new()), "{seen:#}");
    // Whole seconds, and a quiet period of less than one.
    let sleep = (last.div_ceil(1000) + 1) * 1000;
    assert_eq!(seen["recommended"], serde_json::json!({"sleepMs": sleep, "maxWaitMs": 10_000}));
    assert!(message.contains(&format!("needs `sleep {}`, a drain `maxWait: 10s`", sleep / 1000)), "{message}");
    let from: Vec<_> =
        seen["sources"]["list"].as_array().unwrap().iter().map(|source| source["from"].clone()).collect();
    assert_eq!(from, ["fd00::/48", "10.0.0.0/24"], "networks, the last first: {seen:#}");

    assert!(told.accept().is_err(), "the server was told something");
    let log = agent.process().text(Stream::Error);
    assert!(!log.contains("the drain starts") && !log.contains("\"verdict\""), "{log}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("log");
    fs::write(&file, format!("{log}\n{log}")).unwrap();
    let shown = agent::subcommand(&pair.pod, "report", [&file]).unwrap();
    shown.wait_for_success(SOON).unwrap();
    let text = shown.text(Stream::Output);
    for words in ["The termination of web-1, observed", "10.0.0.0/24", "For the longest of 2 terminations: `sleep "] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn by_its_own_hook_it_begins_before_sigterm_and_with_a_linger_it_counts_the_refused() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = Agent::start(&pair.pod, config().env("LASTSYN_AFTER_END_LINGER", "2s")).unwrap();
    agent.hook(["--mark"]).unwrap().wait_for_success(SOON).unwrap();
    agent.process().wait_for_line("for how long new connections keep coming", SOON).unwrap();
    server.close().unwrap();
    agent.terminate().unwrap();
    let asked = monotonic_now();
    for target in pair.targets(80) {
        assert_eq!(connect_once(&pair.client, target, SOON).outcome, Outcome::Refused);
    }
    agent.process().wait_for_success(SOON).unwrap();
    assert!(millis_since(asked) >= 2000, "it left before the linger was over");
    let (message, seen) = logged(&agent);
    for family in ["IPv4", "IPv6"] {
        let lane = lane(&seen, family);
        assert_eq!((&lane["attempts"], &lane["refused"]), (&1.into(), &1.into()), "{seen:#}");
    }
    assert_eq!((&seen["by"], &seen["stopped"]), (&"ownHook".into(), &true.into()), "{seen:#}");
    assert!(message.contains("after the pod's termination had begun"), "{message}");
}

#[test]
fn where_connections_do_not_stop_the_numbers_are_lower_bounds() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let config = config().env("LASTSYN_DRAIN_QUIET_PERIOD", "5s").env("LASTSYN_REPORT_SOURCES", "off");
    let agent = Agent::start(&pair.pod, config).unwrap();
    agent.terminate().unwrap();
    agent.process().wait_for_line("for how long new connections keep coming", SOON).unwrap();
    drop(Connection::open(&pair.client, pair.targets(80)[0], SOON).unwrap());
    server.close().unwrap();
    agent.process().wait_for_success(SOON).unwrap();
    let (message, seen) = logged(&agent);
    assert_eq!((&seen["stopped"], &seen["sources"]), (&false.into(), &Value::Null), "{seen:#}");
    assert!(message.contains("at the least"), "{message}");
}
