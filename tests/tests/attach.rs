//! The kernel's programs go with the agent, come back with it, are first, and follow the pod's interfaces.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Connection, End, Families, Link, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition, monotonic_now,
    pair::INTERFACE,
    raw::{Segment, Sender},
    tcx::{Stranger, programs_on},
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
/// The hardware addresses on the second wire, of the client and the pod.
const NEAR: [u8; 6] = [0x02, 0, 0, 0, 1, 1];
const FAR: [u8; 6] = [0x02, 0, 0, 0, 1, 2];
/// Long enough for a slow machine to set a scene while a drain lasts.
const QUIET: Duration = Duration::from_secs(2);

#[test]
fn a_killed_agent_leaves_no_program_behind() {
    let pair = Pair::new().unwrap();
    let on_both = || [INTERFACE, "lo"].map(|interface| programs_on(&pair.pod, interface).unwrap());
    assert!(on_both().iter().all(Vec::is_empty));

    let agent = start(&pair).unwrap();
    let [on_wire, on_loopback] = on_both();
    assert_eq!((on_wire.len(), on_loopback.len()), (1, 1));
    assert_ne!(on_wire, on_loopback, "the loopback has a program of its own");

    let status = agent.kill().unwrap();
    assert!(!status.success(), "{status}");
    // The kernel takes the programs off when the last descriptor closes, from a work queue.
    await_condition("no program on any interface", SOON, || on_both().iter().all(Vec::is_empty)).unwrap();

    let again = start(&pair).unwrap();
    assert_eq!(on_both().map(|programs| programs.len()), [1, 1]);
    drop(again);
    await_condition("no program on any interface", SOON, || on_both().iter().all(Vec::is_empty)).unwrap();
}

#[test]
fn the_agents_program_is_first_whoever_came_before_or_comes_after() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let earlier = Stranger::attach_first(&pair.pod, INTERFACE).unwrap();
    assert_eq!(programs_on(&pair.pod, INTERFACE).unwrap(), [earlier.program()]);

    let agent = start(&pair).unwrap();
    let chain = programs_on(&pair.pod, INTERFACE).unwrap();
    let [own, second] = chain[..] else { panic!("{chain:?}") };
    assert_eq!(second, earlier.program());

    // Who puts itself in front afterwards is noticed, and the drain's quiet begins anew.
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    let later = Stranger::attach_first(&pair.pod, INTERFACE).unwrap();
    let intruded_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();
    assert_eq!(programs_on(&pair.pod, INTERFACE).unwrap(), [own, later.program(), earlier.program()]);
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(intruded_at));
    assert!(held >= QUIET, "the drain ended {held:?} after another program was put first: {}", answer.verdict);
    has_a_gap(&answer.verdict);
}

#[test]
fn a_program_that_came_and_went_holds_the_drain() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = start(&pair).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    let chain = programs_on(&pair.pod, INTERFACE).unwrap();
    // In between it could have hidden anything from the agent's program, and leaves no trace but the chain's revision.
    drop(Stranger::attach_first(&pair.pod, INTERFACE).unwrap());
    await_condition("the chain as before", SOON, || programs_on(&pair.pod, INTERFACE).unwrap() == chain).unwrap();
    let gone_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(gone_at));
    assert!(held >= QUIET, "the drain ended {held:?} after another program had gone: {}", answer.verdict);
    has_a_gap(&answer.verdict);
}

#[test]
fn with_reattaching_off_the_agent_says_that_it_is_blind() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = Agent::start(&pair.pod, config().env("LASTSYN_SENSOR_REATTACH", "false")).unwrap();
    let _later = Stranger::attach_first(&pair.pod, INTERFACE).unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], false, "{status}");
    let why = status["sensor"]["why"].as_str().unwrap();
    assert!(why.contains(INTERFACE) && why.contains("sensor.reattach"), "{why}");
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
}

#[test]
fn an_interface_that_appears_is_watched_and_holds_the_drain() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    // A handshake that is never completed: neither it nor the witness holds the drain.
    let agent = Agent::start(&pair.pod, config().env("LASTSYN_DRAIN_HANDSHAKE_GRACE", "0s")).unwrap();
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();

    let targets = second_wire(&pair).unwrap();
    // The agent may not have noticed yet. What comes now may be missed, and so the quiet period begins anew.
    let stranger = SocketAddr::from(([198, 51, 100, 7], 40_000));
    let syn = Segment::syn(stranger, targets[0]).between(NEAR, FAR);
    let sender = Sender::open(&pair.client, "eth1").unwrap();
    let missed_at = monotonic_now();
    sender.send(&syn).unwrap();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(missed_at));
    assert!(held >= QUIET, "the drain ended {held:?} after a SYN over a new interface: {}", answer.verdict);
    has_a_gap(&answer.verdict);

    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], true, "{status}");
    let interfaces = status["sensor"]["interfaces"].as_array().unwrap();
    assert!(interfaces.contains(&"eth1".into()), "{interfaces:?}");
    let before = counts_of_both(&agent).unwrap();
    connect(&pair, targets[0], 5).unwrap();
    connect(&pair, targets[1], 3).unwrap();
    connect(&pair, pair.targets(80)[0], 2).unwrap();
    let after = counts_of_both(&agent).unwrap();
    assert_eq!((after[0].new - before[0].new, after[1].new - before[1].new), (5 + 2, 3));

    // One that goes is no fault.
    pair.pod.ip("link delete eth1\n").unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], true, "{status}");
    assert_eq!(counts_of_both(&agent).unwrap(), after);
}

#[test]
fn an_interface_without_ethernet_frames_is_named() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair).unwrap();
    // Down, it receives nothing.
    pair.pod.ip("tuntap add dev tun0 mode tun\n").unwrap();
    assert_eq!(agent.status_of_now().unwrap()["sensor"]["healthy"], true);
    pair.pod.ip("link set tun0 up\n").unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], false, "{status}");
    let why = status["sensor"]["why"].as_str().unwrap();
    assert!(why.contains("tun0"), "{why}");
}

/// The verdict says that the sensor was not in place for the whole drain, and claims no more than that allows.
fn has_a_gap(verdict: &Value) {
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"unverified".into(), &false.into()), "{verdict}");
    let mut entries = verdict["notObserved"].as_array().into_iter().flatten();
    let names_it = |entry: &Value| entry["why"].as_str().is_some_and(|why| why.contains("for a part of this drain"));
    assert!(entries.any(|entry| entry["what"] == "sensor" && names_it(entry)), "{verdict}");
}

fn config() -> AgentConfig {
    AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
}

fn start(pair: &Pair) -> Result<Agent> {
    let agent = Agent::start(&pair.pod, config())?;
    let status = agent.status_of_now()?;
    ensure!(status["sensor"]["healthy"] == true, "the agent has no sensor: {status}");
    Ok(agent)
}

/// A second wire between client and pod; the pod's addresses on it, IPv4 first.
fn second_wire(pair: &Pair) -> Result<[SocketAddr; 2]> {
    let (v4, v6) = (Ipv4Addr::new(10, 1, 0, 2), Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 2));
    let near = End {
        host: &pair.client,
        interface: "eth1",
        v4: (Ipv4Addr::new(10, 1, 0, 1), 24),
        v6: (Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1), 64),
        hardware: NEAR,
    };
    let far = End { host: &pair.pod, interface: "eth1", v4: (v4, 24), v6: (v6, 64), hardware: FAR };
    Link { ends: [near, far], families: Families::Dual, mtu: 1500 }.make()?;
    Ok([SocketAddr::from((v4, 80)), SocketAddr::from((v6, 80))])
}

fn connect(pair: &Pair, target: SocketAddr, times: usize) -> Result<()> {
    for _ in 0..times {
        ensure!(Connection::open(&pair.client, target, SOON)?.request()? == "server", "somebody else answered");
    }
    Ok(())
}

fn counts_of_both(agent: &Agent) -> Result<[Counts; 2]> {
    let status = agent.status_of_now()?;
    let of = |family| counts(&status, 80, family).with_context(|| format!("no counts: {status}"));
    Ok([of("IPv4")?, of("IPv6")?])
}
