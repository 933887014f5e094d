//! `GET /ready/NAME`: the server's own readiness until it is to fail, and again once another server has come in its place.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use lastsyn_tests::{Agent, AgentConfig, HaProxy, Nginx, Pair, Release, Server, ServerConfig, await_condition, http};

const SOON: Duration = Duration::from_secs(10);

fn config(upstream: &str) -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_READINESS_UPSTREAM", upstream)
        .env("LASTSYN_READINESS_FAIL_AFTER", "0s")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "100ms")
}

/// As a kubelet probes: from outside the pod.
fn probe(pair: &Pair, agent: &Agent, path: &str) -> http::Answer {
    let address = (pair.targets(80).first().unwrap().ip(), agent.address().port()).into();
    http::get(&pair.client, address, path, SOON).unwrap()
}

#[test]
fn the_real_answer_is_passed_on_until_readiness_fails_and_from_the_next_server_on() {
    let pair = Pair::new().unwrap();
    let nginx = Nginx::start(&pair.pod, "web", 80).unwrap();
    let agent = Agent::start(&pair.pod, config("{web: 'http://127.0.0.1:80/'}")).unwrap();
    let answer = probe(&pair, &agent, "/ready/web");
    assert_eq!((answer.status, answer.body.as_str()), (200, "web"));

    agent.hook(["--mark", "--strict"]).unwrap().wait_for_success(SOON).unwrap();
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    let answer = probe(&pair, &agent, "/ready/web");
    assert_eq!(answer.status, 503, "the drained server answers, and is not ready: {}", answer.body);
    assert!(answer.body.contains("draining"), "{}", answer.body);

    // Only the container is restarted: the next one is not to inherit what the one before it was told.
    nginx.stop().unwrap();
    nginx.process().wait(SOON).unwrap();
    await_condition("the old server's end seen", SOON, || probe(&pair, &agent, "/ready/web").body.contains("refused"))
        .unwrap();
    let _next = Nginx::start(&pair.pod, "next", 80).unwrap();
    let answer = probe(&pair, &agent, "/ready/web");
    assert_eq!((answer.status, answer.body.as_str()), (200, "next"));
}

#[test]
fn a_server_that_fails_is_gone_or_hangs_is_not_ready() {
    let pair = Pair::new().unwrap();
    let haproxy = HaProxy::start_with_switches(&pair.pod, Release::Installed, "web", 80, 8404).unwrap();
    let hanging =
        Server::start(&pair.pod, ServerConfig { port: 81, accept: false, ..ServerConfig::default() }).unwrap();
    let upstream = "{web: 'http://localhost:8404/ready', gone: 'http://127.0.0.1:1/', hangs: 'http://127.0.0.1:81/'}";
    // What hangs never takes the probe's connection, which would hold a drain where the port is watched.
    let agent = Agent::start(&pair.pod, config(upstream).env("LASTSYN_LISTENERS_EXCLUDE", "81")).unwrap();
    assert_eq!(probe(&pair, &agent, "/ready/web").status, 200);
    // Its own readiness, failing and passing, is passed on with the next probe.
    for (command, status) in [("disable", 503), ("enable", 200)] {
        haproxy.control(&format!("{command} server lastsyn/ready")).unwrap();
        let answer = probe(&pair, &agent, "/ready/web");
        assert_eq!(answer.status, status);
        assert!(!answer.body.contains("draining"), "{}", answer.body);
    }
    let answer = probe(&pair, &agent, "/ready/gone");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("http://127.0.0.1:1/") && answer.body.contains("refused"), "{}", answer.body);
    let answer = probe(&pair, &agent, "/ready/hangs");
    assert_eq!(answer.status, 504, "{}", answer.body);
    let answer = probe(&pair, &agent, "/ready/other");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("gone, hangs, web"), "{}", answer.body);
    // None of this holds a drain.
    assert_eq!(agent.drain().unwrap().wait(SOON).unwrap().verdict["reason"], "quiet");
    drop(hanging);
}
