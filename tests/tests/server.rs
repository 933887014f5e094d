//! S10: the hook and the log level answer the pod itself and nobody else; whoever looks may come from anywhere.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

use lastsyn_tests::{
    Agent, AgentConfig, Host, Pair,
    agent::{self, DrainCall},
    await_condition,
    http::{self, Method},
};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn from_outside_the_hook_and_the_log_level_are_refused() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair.pod);
    for target in pair.targets(agent::PORT) {
        for (method, path, body) in [
            (Method::POST, "/drain", ""),
            (Method::GET, "/drain", ""),
            (Method::PUT, "/v1/log-level", "trace"),
            (Method::GET, "/v1/log-level", ""),
            (Method::POST, "/drain?from=127.0.0.1", ""),
        ] {
            let answer = http::request(&pair.client, &method, target, path, body, SOON).unwrap();
            assert_eq!(answer.status, 403, "{method} {path} of {target}: {}", answer.body);
            assert!(answer.body.contains("only the pod itself"), "{}", answer.body);
        }
    }
    let status = agent.status_of_now().unwrap();
    assert_eq!((&status["state"], &status["drain"]), (&"serving".into(), &serde_json::Value::Null), "{status}");
    assert_eq!(status["drainsEnded"], 0);
    assert!(!status["journal"].to_string().contains("called the hook"), "{status}");
    assert_eq!(agent.get("/v1/log-level").unwrap().body.trim(), "info");
}

#[test]
fn from_outside_everybody_may_look() {
    let pair = Pair::new().unwrap();
    let _agent = start(&pair.pod);
    for target in pair.targets(agent::PORT) {
        let status = http::get(&pair.client, target, "/v1/status", SOON).unwrap();
        assert_eq!((status.status, &status.json().unwrap()["state"]), (200, &"serving".into()));
        for path in ["/metrics", "/healthz", "/readyz"] {
            assert_eq!(http::get(&pair.client, target, path, SOON).unwrap().status, 200, "{path} of {target}");
        }
        assert_eq!(http::get(&pair.client, target, "/elsewhere", SOON).unwrap().status, 404);
    }
}

#[test]
fn the_pod_itself_calls_the_hook_over_every_way_there_is() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair.pod);
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let own: Vec<SocketAddr> =
        loopback.into_iter().map(|ip| SocketAddr::new(ip, agent::PORT)).chain(pair.targets(agent::PORT)).collect();

    // All at once: they join one drain.
    let calls: Vec<DrainCall> = own.iter().map(|&target| DrainCall::place(&pair.pod, target).unwrap()).collect();
    let socket = format!("unix:{}", agent::socket(&pair.pod).display());
    let hook = agent.hook(["--json", "--strict", "--agent", &socket]).unwrap();
    for (target, call) in own.iter().zip(calls) {
        let answer = call.wait(SOON).unwrap();
        assert_eq!(answer.status, 200, "{target}: {}", answer.verdict);
        assert_eq!(answer.verdict["reason"], "unverified", "nothing listens: {}", answer.verdict);
    }
    hook.wait_for_success(SOON).unwrap();
    assert!(
        hook.text(lastsyn_tests::process::Stream::Output).contains("\"reason\":\"unverified\""),
        "{}",
        hook.report()
    );

    for (level, target) in ["debug", "warn", "trace", "info"].into_iter().zip(own) {
        let set = http::request(&pair.pod, &Method::PUT, target, "/v1/log-level", level, SOON).unwrap();
        assert_eq!(set.status, 200, "{target}: {}", set.body);
        assert_eq!(agent.get("/v1/log-level").unwrap().body.trim(), level);
    }
    let wrong = http::request(&pair.pod, &Method::PUT, agent.address(), "/v1/log-level", "loud", SOON).unwrap();
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    assert_eq!(agent.get("/v1/log-level").unwrap().body.trim(), "info");
}

#[test]
fn an_address_that_the_pod_gets_later_is_its_own() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair.pod);
    pair.pod.ip("address add 10.0.0.77/32 dev eth0\n").unwrap();
    // The agent learns of it when it next looks around.
    agent.status_of_now().unwrap();
    let target = SocketAddr::from(([10, 0, 0, 77], agent::PORT));
    assert_eq!(DrainCall::place(&pair.pod, target).unwrap().wait(SOON).unwrap().status, 200);
}

#[test]
fn outsiders_who_take_every_place_turn_nobody_of_the_pod_away_and_keep_no_place() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair.pod);
    let target = pair.targets(agent::PORT)[0];
    // More than there are places, each of which asks on and on, and reads nothing.
    let outsiders: Vec<TcpStream> = pair.client.run(|| (0..80).map(|_| ask_without_end(target)).collect());
    let looks = || http::get(&pair.client, target, "/healthz", SOON).is_ok_and(|answer| answer.status == 200);
    await_condition("every place is taken", SOON, || !looks()).unwrap();

    agent.status_of_now().unwrap();
    let answer = DrainCall::place(&pair.pod, target).unwrap().wait(SOON).unwrap();
    assert_eq!(answer.status, 200, "by the pod's own address: {}", answer.verdict);
    await_condition("there are places again", Duration::from_secs(40), looks).unwrap();
    drop(outsiders);
}

/// A connection with more requests in it than the agent can answer without being read.
fn ask_without_end(target: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(target).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
    let requests = b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n".repeat(1000);
    while stream.write_all(&requests).is_ok() {}
    stream
}

fn start(pod: &Host) -> Agent {
    Agent::start(pod, AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "500ms")).unwrap()
}
