//! The sensor `clsact`: its filters come first, go with the agent, and are swept where an agent was killed; what others have
//! put there stays.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use anyhow::Result;
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Counted, Host, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition,
    bpf::{Does, Place, Program},
    counted::PORT,
    monotonic_now,
    pair::INTERFACE,
    traffic_control::{Filter, filters, has_clsact, tc},
};

const SOON: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_secs(2);
/// Another's filter, which every packet matches: those behind it see none. No filter of another kind or for another protocol
/// can be of its priority.
const TAKES_ALL: &str = "protocol all u32 match u32 0 0";
const BOTH: [&str; 2] = [INTERFACE, "lo"];

fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_SENSOR_STRATEGY", "clsact")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
}

/// A second agent in a namespace.
fn second(host: &Host) -> Result<Agent> {
    let config = AgentConfig { port: Some(19_481), ..config() }
        .env("LASTSYN_SERVER_ADDRESS", "[::]:19481")
        .env("LASTSYN_SERVER_SOCKET", "")
        .env("LASTSYN_LISTENERS_WATCH", PORT.to_string());
    Agent::start(host, config)
}

fn counted() -> Counted {
    Counted::with(Pair::new().unwrap(), config()).unwrap()
}

fn own() -> Filter {
    Filter { priority: 1, kind: "bpf".to_owned(), name: "lastsyn".to_owned() }
}

fn filters_of(host: &Host) -> [Vec<Filter>; 2] {
    BOTH.map(|interface| filters(host, interface).unwrap())
}

fn connect(pair: &Pair, times: usize) {
    for target in pair.targets(PORT).into_iter().cycle().take(2 * times) {
        assert_eq!(Connection::open(&pair.client, target, SOON).unwrap().request().unwrap(), "server");
    }
}

fn await_drain(agent: &Agent) {
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
}

#[test]
fn an_agent_that_stops_leaves_nothing() {
    let counted = counted();
    let pod = &counted.pair.pod;
    assert_eq!(filters_of(pod), [vec![own()], vec![own()]]);
    counted.agent.terminate().unwrap();
    assert!(counted.agent.wait(SOON).unwrap().success());
    assert_eq!(filters_of(pod), [vec![], vec![]]);
    assert_eq!(BOTH.map(|interface| has_clsact(pod, interface).unwrap()), [false; 2]);
}

#[test]
fn what_a_killed_agent_has_left_is_swept_by_the_next() {
    let counted = counted();
    let pod = &counted.pair.pod;
    counted.agent.kill().unwrap();
    assert_eq!(filters_of(pod), [vec![own()], vec![own()]], "nobody has taken them away");

    let again = Agent::start(pod, config()).unwrap();
    assert_eq!(filters_of(pod), [vec![own()], vec![own()]], "one each, and not two");
    again.process().wait_for_line("the filter of an agent that was killed", SOON).unwrap();
    // The discipline was made by the one that was killed: it goes as well.
    again.terminate().unwrap();
    assert!(again.wait(SOON).unwrap().success());
    assert_eq!(filters_of(pod), [vec![], vec![]]);
    assert_eq!(BOTH.map(|interface| has_clsact(pod, interface).unwrap()), [false; 2]);
}

#[test]
fn a_running_agents_filters_are_no_leftovers() {
    let counted = counted();
    let server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let pod = &counted.pair.pod;
    let second = second(pod).unwrap();
    assert_eq!(filters_of(pod), [vec![own(), own()], vec![own(), own()]]);
    connect(&counted.pair, 50);
    let status = second.status_of_now().unwrap();
    for family in ["IPv4", "IPv6"] {
        assert_eq!(counts(&status, PORT, family), Some(Counts::new(50)), "{status}");
    }
    assert_eq!(counted.so_far().unwrap(), [Counts::new(50); 2]);
    // Neither takes the other for an intruder,
    let calls = [&counted.agent, &second].map(|agent| agent.drain().unwrap());
    for verdict in calls.map(|call| call.wait(SOON).unwrap().verdict) {
        assert_eq!((&verdict["reason"], &verdict["sensor"]["blindMs"]), (&"quiet".into(), &0.into()), "{verdict}");
    }
    // and the one that made the discipline leaves it to the other.
    server.close().unwrap();
    counted.agent.terminate().unwrap();
    assert!(counted.agent.wait(SOON).unwrap().success());
    assert_eq!(filters_of(pod), [vec![own()], vec![own()]]);
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    connect(&counted.pair, 5);
    let status = second.status_of_now().unwrap();
    assert_eq!(counts(&status, PORT, "IPv6"), Some(Counts::new(55)), "{status}");
}

#[test]
fn what_others_have_made_stays() {
    let pair = Pair::new().unwrap();
    let pod = &pair.pod;
    tc(pod, &format!("qdisc add dev {INTERFACE} clsact")).unwrap();
    tc(pod, &format!("filter add dev {INTERFACE} ingress pref 7 {TAKES_ALL}")).unwrap();
    let before = filters(pod, INTERFACE).unwrap();
    assert!(!before.is_empty());

    let agent = Agent::start(pod, config()).unwrap();
    assert_eq!(filters(pod, INTERFACE).unwrap(), [vec![own()], before.clone()].concat());
    agent.kill().unwrap();
    let again = Agent::start(pod, config()).unwrap();
    assert_eq!(filters(pod, INTERFACE).unwrap(), [vec![own()], before.clone()].concat());
    // On the loopback another comes later, onto the agent's discipline.
    tc(pod, &format!("filter add dev lo ingress pref 9 {TAKES_ALL}")).unwrap();
    again.terminate().unwrap();
    assert!(again.wait(SOON).unwrap().success());
    assert_eq!(filters(pod, INTERFACE).unwrap(), before);
    let on_loopback = filters(pod, "lo").unwrap();
    assert!(!on_loopback.is_empty() && !on_loopback.contains(&own()), "{on_loopback:?}");

    // Without any filter, and made by another.
    tc(pod, &format!("filter del dev {INTERFACE} ingress")).unwrap();
    let third = Agent::start(pod, config()).unwrap();
    third.terminate().unwrap();
    assert!(third.wait(SOON).unwrap().success());
    assert_eq!(BOTH.map(|interface| has_clsact(pod, interface).unwrap()), [true; 2]);
    assert_eq!(filters(pod, "lo").unwrap(), on_loopback);
}

#[test]
fn a_filter_that_is_taken_away_holds_the_drain_and_is_put_back() {
    let counted = counted();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent);
    // The whole discipline, as somebody does who wants the interface clean.
    tc(&counted.pair.pod, &format!("qdisc del dev {INTERFACE} clsact")).unwrap();
    connect(&counted.pair, 1);
    let missed_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(missed_at));
    assert!(held >= QUIET, "the drain ended {held:?} after a connect that was missed: {}", answer.verdict);
    has_a_gap(&answer.verdict);
    assert_eq!(filters(&counted.pair.pod, INTERFACE).unwrap(), [own()]);
}

#[test]
fn a_filter_that_came_and_went_holds_the_drain() {
    let counted = counted();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent);
    // In between it could have hidden anything. The kernel's list shows no trace of it.
    let pod = &counted.pair.pod;
    tc(pod, &format!("filter add dev {INTERFACE} ingress pref 9 {TAKES_ALL}")).unwrap();
    tc(pod, &format!("filter del dev {INTERFACE} ingress pref 9")).unwrap();
    let gone_at = monotonic_now();
    assert_eq!(filters(pod, INTERFACE).unwrap(), [own()]);
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(gone_at));
    assert!(held >= QUIET, "the drain ended {held:?} after another's filter had gone: {}", answer.verdict);
    has_a_gap(&answer.verdict);
}

#[test]
fn a_tcx_program_that_may_hide_packets_is_told() {
    let counted = counted();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let ends = Program::attach(&counted.pair.pod, INTERFACE, Place::First, Does::EndsTheChain).unwrap();
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], false, "{status}");
    assert!(status["sensor"]["why"].to_string().contains("a TCX program of another"), "{status}");
    drop(ends);
    await_condition("a sensor that sees everything", SOON, || {
        counted.agent.status_of_now().is_ok_and(|status| status["sensor"]["healthy"] == true)
    })
    .unwrap();
}

#[test]
fn where_another_has_the_first_place_for_good_the_next_sensor_is_taken() {
    const WITHOUT_TCX: &str = env!("CARGO_BIN_EXE_without_tcx");
    let pair = Pair::new().unwrap();
    tc(&pair.pod, &format!("qdisc add dev {INTERFACE} clsact")).unwrap();
    tc(&pair.pod, &format!("filter add dev {INTERFACE} ingress pref 1 {TAKES_ALL}")).unwrap();
    let before = filters(&pair.pod, INTERFACE).unwrap();
    let agent = Agent::start(&pair.pod, AgentConfig::default().through([WITHOUT_TCX])).unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!((&status["sensor"]["strategy"], &status["sensor"]["healthy"]), (&"packet".into(), &true.into()));
    let passed_over = status["sensor"]["passedOver"].to_string();
    assert!(passed_over.contains("another's filter has the first priority"), "{status}");
    assert_eq!(filters(&pair.pod, INTERFACE).unwrap(), before);
}

fn has_a_gap(verdict: &serde_json::Value) {
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"unverified".into(), &false.into()), "{verdict}");
    assert_eq!(verdict["sensor"]["strategy"], "clsact", "{verdict}");
    assert!(verdict["sensor"]["blindMs"].as_u64().is_some_and(|blind| blind > 0), "{verdict}");
}
