//! The log of a drain: few lines of level info, a warning with what was not observed, no flood, and a level that can be changed while the
//! agent runs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{net::TcpListener, time::Duration};

use hyper::Method;
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Pair, Server, ServerConfig, await_condition, http, process::Stream,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
/// What a drain may have at level info, from the hook's call to the agent's end.
const BUDGET: usize = 10;

fn lines(agent: &Agent) -> Vec<Value> {
    agent.process().text(Stream::Error).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The messages of a level, from the hook's first call on.
fn of_the_drain(agent: &Agent, level: &str) -> Vec<String> {
    let lines = lines(agent);
    let message = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let from = lines.iter().position(|line| message(line).ends_with("called the hook: the drain starts")).unwrap();
    lines[from..].iter().filter(|line| line["level"] == level).map(message).collect()
}

#[test]
fn a_drain_has_ten_lines_at_most_however_much_happens_and_says_what_was_not_observed() {
    let pair = Pair::new().unwrap();
    // They come and go: each is an entry of the journal.
    let listen = |ports: std::ops::Range<u16>| {
        pair.pod.run(|| ports.map(|port| TcpListener::bind(("::", port))).collect::<std::io::Result<Vec<_>>>().unwrap())
    };
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let many = listen(2000..2020);
    // One answers nothing: what is told in vain is a warning.
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "1s")
        .env("LASTSYN_DRAIN_RESTART_GUARD", "0s")
        .env("LASTSYN_PROXY_KIND", "http")
        .env("LASTSYN_PROXY_HTTP_ANNOUNCE", "{url: http://127.0.0.1:9/none}");
    let agent = Agent::start(&pair.pod, config).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    let more = listen(3000..3020);
    let joined: Vec<_> = (0..10).map(|_| agent.drain().unwrap()).collect();
    for target in pair.targets(80) {
        drop(Connection::open(&pair.client, target, SOON).unwrap());
    }
    drop(joined);
    let watched = |count: usize| {
        let status = agent.status_of_now().unwrap();
        status["listeners"].as_array().unwrap().len() >= count
    };
    await_condition("all of them", SOON, || watched(41)).unwrap();
    drop((many, more));
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    agent.process().wait_for_line("could not be told announce", SOON).unwrap();
    // What the log leaves out, the report has.
    let report = agent.get("/v1/report").unwrap().body;
    assert!(report.contains("port 3019 is watched from now on"), "{report}");
    server.close().unwrap();
    agent.terminate().unwrap();
    agent.process().wait_for_success(SOON).unwrap();

    let info = of_the_drain(&agent, "INFO");
    assert!(info.len() <= BUDGET, "{} lines: {info:#?}", info.len());
    for words in [
        "the drain starts",
        "the drain ended: quiet",
        "the drain's course; lastsyn report",
        "asked to stop",
        "no listener any more",
    ] {
        assert_eq!(info.iter().filter(|line| line.contains(words)).count(), 1, "{words}: {info:#?}");
    }
    let warnings = of_the_drain(&agent, "WARN");
    let named = |words: &str| warnings.iter().filter(|line| line.contains(words)).count();
    assert_eq!(named("not observed: "), 1, "{warnings:#?}");
    assert!(named("could not be told announce") >= 1 && warnings.len() <= 10, "{warnings:#?}");
}

#[test]
fn at_rest_a_thousand_listeners_are_no_thousand_lines() {
    let pair = Pair::new().unwrap();
    let listen = || (2000..3000).map(|port| TcpListener::bind(("::", port))).collect::<std::io::Result<Vec<_>>>();
    let _sockets = pair.pod.run(listen).unwrap();
    let agent = Agent::start(&pair.pod, AgentConfig::default()).unwrap();
    agent.process().wait_for_line("more lines are not in the log for their number", SOON).unwrap();
    assert!(lines(&agent).len() < 50, "{}", lines(&agent).len());
}

#[test]
fn the_level_changes_while_it_runs_and_debug_has_what_info_leaves_out() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = Agent::start(&pair.pod, AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "300ms")).unwrap();
    let set = |level: &str| {
        let set = http::request(&pair.pod, &Method::PUT, agent.address(), "/v1/log-level", level, SOON).unwrap();
        assert_eq!(set.status, 200, "{set:?}");
    };
    let drain = || assert_eq!(agent.drain().unwrap().wait(SOON).unwrap().verdict["reason"], "quiet");
    drain();
    assert!(of_the_drain(&agent, "DEBUG").is_empty());
    set("info,lastsyn::drive=debug");
    drain();
    agent.process().wait_for_line("\"DEBUG\",\"message\":\"the drain ended: quiet\"", SOON).unwrap();
    set("error");
    let before = lines(&agent).len();
    drain();
    assert_eq!(lines(&agent).len(), before, "{}", agent.process().report());
}
