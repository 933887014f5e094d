//! The witness: the namespace's own count of completed handshakes. It never accuses a sensor that sees everything, and
//! no handshake that the sensor missed leaves a verdict of `quiet`.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Result;
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Host, PacedClient, Pair, Server, ServerConfig, await_condition,
    counters::Counters,
    monotonic_now,
    pair::INTERFACE,
    tcx::{detach, programs_on},
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a slow machine to set a scene while a drain lasts.
const QUIET: Duration = Duration::from_secs(2);
const WATCHED: u16 = 80;
const UNWATCHED: u16 = 9000;

#[test]
fn connects_inside_the_pod_and_to_unwatched_ports_do_not_blind_the_sensor() {
    let pair = Pair::new().unwrap();
    let _servers = [WATCHED, UNWATCHED]
        .map(|port| Server::start(&pair.pod, ServerConfig { port, backlog: 2000, ..ServerConfig::default() }).unwrap());
    let agent = start(&pair.pod, true).unwrap();
    let opens = || Counters::of(&pair.pod).unwrap().tcp("PassiveOpens");
    let opens_before = opens();

    // Somebody knocks, so that the drain is under way while everything else happens.
    let knocking = PacedClient::start(&pair.client, pair.targets(WATCHED), 200).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || state(&agent) == "draining").unwrap();
    let loopback = ["127.0.0.1:80", "[::1]:80", "127.0.0.1:9000", "[::1]:9000"].map(|text| text.parse().unwrap());
    let own_addresses = pair.targets(WATCHED);
    let inside: Vec<SocketAddr> = loopback.into_iter().chain(own_addresses).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The agent looks at the numbers at any moment, not only when all is at rest.
        let looking = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::Relaxed) {
                let status = agent.status().unwrap();
                assert_eq!(status["sensor"]["healthy"], true, "{status}");
                looks += 1;
            }
            looks
        });
        connect(&pair.pod, &inside, 5000).unwrap();
        connect(&pair.client, &pair.targets(UNWATCHED), 5000).unwrap();
        done.store(true, Ordering::Relaxed);
        assert!(looking.join().unwrap() > 10);
    });
    assert!(call.answered().unwrap().is_none(), "the drain did not last as long as the connects");
    let completed = opens() - opens_before;
    assert!(completed >= 10_000, "{completed} handshakes");

    let attempts = knocking.stop().unwrap();
    assert!(attempts.len() > 10);
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"quiet".into(), &true.into()), "{verdict}");
    assert!(!journal(&agent).contains("blind"));
    let attempts: u64 = ["IPv4", "IPv6"]
        .iter()
        .map(|family| lastsyn_tests::agent::counts(&verdict, WATCHED, family).unwrap().new)
        .sum();
    assert!(attempts > 10, "{verdict}");
}

#[test]
fn connects_that_the_sensor_missed_are_never_quiet() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = start(&pair.pod, true).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || state(&agent) == "draining").unwrap();

    let own = programs_on(&pair.pod, INTERFACE).unwrap();
    assert_eq!(own.len(), 1);
    // The agent looks after its program every second; what is to be missed must come in between.
    let missed = || -> Result<bool> {
        detach(own[0])?;
        for target in pair.targets(WATCHED).into_iter().cycle().take(10) {
            assert_eq!(Connection::open(&pair.client, target, SOON)?.request()?, "server");
        }
        Ok(programs_on(&pair.pod, INTERFACE)?.is_empty())
    };
    await_condition("connects that it missed", SOON, || missed().unwrap()).unwrap();
    let missed_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();

    let verdict = &answer.verdict;
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
    assert_eq!(verdict["sensor"]["healthy"], false, "{verdict}");
    let why = not_observed(verdict, "sensor");
    // Not always all ten: a handshake that was open when the drain began excuses one.
    assert!(why.contains("more handshakes were completed in this namespace than SYNs were seen"), "{verdict}");
    assert_eq!(programs_on(&pair.pod, INTERFACE).unwrap(), own, "the program is back");
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(missed_at));
    assert!(held >= QUIET, "the drain ended {held:?} after connects that it had not seen: {verdict}");
    assert!(journal(&agent).contains("the sensor is blind"), "{}", journal(&agent));

    // The next drain sees everything again.
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"quiet".into(), &true.into()), "{verdict}");
}

#[test]
fn a_sensor_that_stays_away_is_never_quiet() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = start(&pair.pod, false).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || state(&agent) == "draining").unwrap();
    let own = programs_on(&pair.pod, INTERFACE).unwrap();
    detach(own[0]).unwrap();
    assert_eq!(Connection::open(&pair.client, pair.targets(WATCHED)[0], SOON).unwrap().request().unwrap(), "server");
    let missed_at = monotonic_now();

    let answer = call.wait(SOON).unwrap();
    let verdict = &answer.verdict;
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
    assert!(not_observed(verdict, "sensor").contains("sensor.reattach is off"), "{verdict}");
    assert!(programs_on(&pair.pod, INTERFACE).unwrap().is_empty());
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(missed_at));
    assert!(held >= QUIET, "the drain ended {held:?} after a connect that it had not seen: {verdict}");
}

fn start(pod: &Host, reattach: bool) -> Result<Agent> {
    let config = AgentConfig::default()
        .env("LASTSYN_LISTENERS_WATCH", WATCHED.to_string())
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
        .env("LASTSYN_DRAIN_MAX_WAIT", "60s")
        .env("LASTSYN_SENSOR_REATTACH", reattach.to_string());
    Agent::start(pod, config)
}

/// Connects, again and again, to each of the targets in turn.
fn connect(host: &Host, targets: &[SocketAddr], times: usize) -> Result<()> {
    host.run(|| {
        for target in targets.iter().cycle().take(times) {
            TcpStream::connect_timeout(target, SOON)?;
        }
        Ok(())
    })
}

fn state(agent: &Agent) -> Value {
    agent.status().map_or(Value::Null, |status| status["state"].clone())
}

fn journal(agent: &Agent) -> String {
    agent.status().map_or_else(|error| error.to_string(), |status| status["journal"].to_string())
}

/// Why something of this kind was not observed; empty if it was.
fn not_observed(verdict: &Value, what: &str) -> String {
    let entries = verdict["notObserved"].as_array().into_iter().flatten();
    entries.filter(|entry| entry["what"] == what).map(|entry| entry["why"].to_string()).collect()
}
