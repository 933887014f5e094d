//! The server in the pod is told of a drain: clients are asked to leave while new connections are still served, readiness
//! fails at its time, and no connection is lost. With the real programs.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{net::SocketAddr, thread, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, Connection, Envoy, Host, KeepAlive, PacedClient, Pair, Process, RealServer, ServerKind,
    Summary, agent, await_condition,
    client::Version,
    envoy, http,
    prove::rollout::{Plan, Round},
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

fn mark(agent: &Agent) {
    agent.hook(["--mark", "--strict"]).unwrap().wait_for_success(SOON).unwrap();
}

/// When the journal first said something, in milliseconds since the agent's start.
fn journal(agent: &Agent, part: &str) -> Option<u64> {
    let status = agent.status().ok()?;
    let lines = status.get("journal")?.as_array()?;
    let said = |line: &&Value| line.get("what").and_then(Value::as_str).is_some_and(|what| what.contains(part));
    lines.iter().find(said)?.get("atMs")?.as_u64()
}

fn await_journal(agent: &Agent, part: &str) -> u64 {
    await_condition(&format!("`{part}` in the journal"), SOON, || journal(agent, part)).unwrap()
}

fn ready(from: &Host, at: SocketAddr, path: &str) -> u16 {
    http::get(from, at, path, SOON).unwrap().status
}

/// What came of a drain with clients that stay and clients that come.
fn phases(kind: ServerKind, readiness: u16, versions: &[Version]) -> Value {
    let pair = Pair::new().unwrap();
    let server = RealServer::start(kind, &pair.pod, "a", 80).unwrap();
    let config =
        AgentConfig::default().env("LASTSYN_READINESS_FAIL_AFTER", "1500ms").env("LASTSYN_DRAIN_QUIET_PERIOD", "500ms");
    let agent = Agent::start(&pair.pod, server.tell(config)).unwrap();
    let fresh = PacedClient::start(&pair.client, pair.targets(80), 200).unwrap();
    let staying: Vec<_> = pair
        .targets(80)
        .into_iter()
        .flat_map(|target| versions.iter().map(move |version| (target, *version)))
        .map(|(target, version)| (version, KeepAlive::start(&pair.client, target, version).unwrap()))
        .collect();
    await_condition("answers to every client", SOON, || {
        fresh.so_far().served_by("a") > 20 && staying.iter().all(|(_, client)| client.so_far().answered > 5)
    })
    .unwrap();
    assert!(staying.iter().all(|(_, client)| client.so_far().connections == 1), "a connection is kept");

    mark(&agent);
    let call = agent.drain().unwrap();
    let health = *pair.targets(readiness).first().unwrap();
    let started = await_journal(&agent, "called the hook");
    await_journal(&agent, "was told: announce");
    await_condition("every client that stays asked to leave", SOON, || {
        staying.iter().all(|(_, client)| client.so_far().asked_to_leave > 0)
    })
    .unwrap();
    // Asking for readiness takes a while: it was ready only if the phase had not come by the time of the answer.
    let status = ready(&pair.client, health, "/ready");
    let failed_by_then = journal(&agent, "was told: fail-readiness").is_some();
    assert!(status == 200 || failed_by_then, "announcing failed readiness");

    await_condition("readiness that fails", SOON, || ready(&pair.client, health, "/ready") == 503).unwrap();
    let failed = await_journal(&agent, "was told: fail-readiness");
    assert!(failed >= started + 1500, "readiness failed {} ms after the hook's call", failed - started);
    let before = fresh.so_far().served_by("a");
    await_condition("new connections after both", SOON, || fresh.so_far().served_by("a") > before + 50).unwrap();
    assert!(call.answered().unwrap().is_none(), "clients still come");

    fresh.set_pace(0);
    for (version, client) in staying {
        let kept = client.so_far();
        assert_eq!(kept.lost, [""; 0], "{version:?}: {kept:?}");
        assert!(kept.connections > 1, "{version:?}: it left and came back: {kept:?}");
    }
    let verdict = call.wait(SOON * 2).unwrap().verdict;
    server.stop().unwrap();
    server.wait(SOON).unwrap();
    let summary = Summary::of(&fresh.stop().unwrap());
    assert_eq!(summary.lost(), 0, "{summary}");
    verdict
}

#[test]
fn s4_envoy_asks_clients_to_leave_and_fails_readiness_later_and_loses_none() {
    let verdict = phases(ServerKind::Envoy, envoy::READINESS, &[Version::Http1, Version::Http2]);
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    let ports: Vec<_> = verdict["listeners"].as_array().unwrap().iter().map(|listener| &listener["port"]).collect();
    assert_eq!(ports, [80], "admin, metrics and readiness are not for clients");
}

#[test]
fn haproxys_switches_ask_clients_to_leave_and_fail_readiness_later() {
    for server in [ServerKind::SwitchedHaProxy, ServerKind::NewHaProxy] {
        let verdict = phases(server, 8404, &[Version::Http1]);
        assert_eq!(verdict["reason"], "quiet", "{server:?}: {verdict}");
    }
}

#[test]
fn a_rollout_of_each_server_loses_no_connection() {
    let servers = [ServerKind::Envoy, ServerKind::SwitchedHaProxy, ServerKind::NewHaProxy, ServerKind::Nginx];
    let plans = servers.map(|server| Plan { server, move_after: Duration::from_millis(1200), ..Plan::full(true) });
    let rounds: Vec<Round> = thread::scope(|scope| {
        let running: Vec<_> = plans.iter().map(|plan| scope.spawn(|| plan.run())).collect();
        running.into_iter().map(|round| round.join().unwrap().unwrap()).collect()
    });
    for (plan, round) in plans.iter().zip(&rounds) {
        round.check(plan).unwrap();
        assert_eq!(round.summary().lost(), 0, "{:?}: {}", plan.server, round.summary());
    }
}

#[test]
fn s4_without_a_sign_nothing_is_told_before_the_guard_and_the_verdict_says_so() {
    let pair = Pair::new().unwrap();
    let server = RealServer::start(ServerKind::Envoy, &pair.pod, "a", 80).unwrap();
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_RESTART_GUARD", "1s")
        .env("LASTSYN_DRAIN_MIN_WAIT", "1500ms")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "100ms");
    let agent = Agent::start(&pair.pod, server.tell(config)).unwrap();
    let call = agent.drain().unwrap();
    let started = await_journal(&agent, "called the hook");
    let told = await_journal(&agent, "was told: announce");
    assert!(told >= started + 1000, "told {} ms after the call", told - started);
    let verdict = call.wait(SOON).unwrap().verdict;
    let what: Vec<_> = verdict["notObserved"].as_array().unwrap().iter().map(|thing| &thing["what"]).collect();
    assert!(what.contains(&&Value::from("termination")), "{verdict}");
    // SIGTERM is a sign.
    let call = agent.drain().unwrap();
    agent.terminate().unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;
    assert!(!verdict["notObserved"].to_string().contains("termination"), "{verdict}");
}

#[test]
fn the_servers_own_count_agrees_with_the_kernels() {
    for (kind, frontend) in [(ServerKind::Envoy, "web (port 80)"), (ServerKind::HaProxy, "web")] {
        let pair = Pair::new().unwrap();
        let server = RealServer::start(kind, &pair.pod, "a", 80).unwrap();
        let target = pair.targets(80)[0];
        let open: Vec<_> = (0..7)
            .map(|_| {
                let mut connection = Connection::open(&pair.client, target, SOON).unwrap();
                assert_eq!(connection.request().unwrap(), "a");
                connection
            })
            .collect();
        let arguments = match &server {
            RealServer::HaProxy(server, _) => vec![
                "--proxy.kind=haproxy".to_owned(),
                format!("--proxy.haproxy.socket=unix:{}", server.control_socket().display()),
            ],
            _ => vec!["--proxy.kind=envoy".to_owned()],
        };
        let kernel = if kind == ServerKind::Envoy { ", 7 by the kernel's" } else { "" };
        let wanted = format!("{frontend}: 7 connections by its own count{kernel}");
        await_condition("both counts", SOON, || check(&pair.pod, &arguments).contains(&wanted))
            .unwrap_or_else(|error| panic!("{error}: {wanted} in {}", check(&pair.pod, &arguments)));
        drop(open);
    }
}

/// What `lastsyn check` says.
fn check(host: &Host, arguments: &[String]) -> String {
    let process: Process = agent::subcommand(host, "check", arguments).unwrap();
    process.wait(SOON).unwrap();
    process.report()
}

#[test]
fn a_wrong_admin_port_is_said_and_the_drain_goes_on() {
    let pair = Pair::new().unwrap();
    let _server = Envoy::start(&pair.pod, "a", 80).unwrap();
    for (admin, why) in [
        ("127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:19001", "something else than Envoy's admin interface"),
        ("unix:/does/not/exist.sock", "No such file"),
    ] {
        let config = AgentConfig::default()
            .env("LASTSYN_PROXY_KIND", "envoy")
            .env("LASTSYN_PROXY_ENVOY_ADMIN", admin)
            .env("LASTSYN_READINESS_FAIL_AFTER", "0s")
            .env("LASTSYN_DRAIN_QUIET_PERIOD", "100ms");
        let agent = Agent::start(&pair.pod, config).unwrap();
        mark(&agent);
        let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
        assert_eq!(verdict["reason"], "quiet", "{verdict}");
        for phase in ["announce", "fail-readiness"] {
            let said = format!("could not be told {phase}: ");
            await_journal(&agent, &said);
            assert!(agent.status().unwrap()["journal"].to_string().contains(why), "{why}");
        }
        let said = check(&pair.pod, &["--proxy.kind=envoy".to_owned(), format!("--proxy.envoy.admin={admin}")]);
        assert!(said.contains("warn  server") && said.contains(why), "{said}");
    }
}
