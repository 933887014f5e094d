//! Interfaces come and go: each is watched soon, what may have been missed meanwhile is told, and no drain that had a gap
//! is called quiet.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Counted, Host, PacedClient, Pair, Server, ServerConfig, Signal, await_condition,
    counted::PORT,
    monotonic_now,
    pair::INTERFACE,
    prove::wait_until,
    tcx::{detach, programs_on},
};

const SOON: Duration = Duration::from_secs(30);
/// Without a notification an interface would be found after 8 s at rest.
const NOTICED: Duration = Duration::from_secs(4);
/// For how long an agent is held up when an interface appears.
const HELD_UP: Duration = Duration::from_millis(400);
const QUIET: Duration = Duration::from_secs(2);
/// Added and removed: 200 changes.
const INTERFACES: usize = 100;

fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
        .env("LASTSYN_DRAIN_MAX_WAIT", "120s")
}

fn await_drain(agent: &Agent) -> Result<()> {
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining"))
}

fn is_watched(host: &Host, interface: &str) -> bool {
    programs_on(host, interface).is_ok_and(|programs| !programs.is_empty())
}

/// Brings up an interface of the pod, and waits until it is watched. Returns for how long it was up and not watched, at
/// least: an agent that is held up cannot have watched it meanwhile.
fn appear(pair: &Pair, name: &str, held_up: Option<&Agent>) -> Result<Duration> {
    let blind = |agent: &Agent| -> Result<u64> {
        agent.status_of_now()?["sensor"]["blindMs"].as_u64().context("the agent does not say for how long it was blind")
    };
    let blind_before = held_up.map(blind).transpose()?;
    if let Some(agent) = held_up {
        agent.process().signal(Signal::STOP)?;
    }
    pair.pod.ip(&format!("link add {name} type veth peer name {name}p netns {}\n", pair.client.name()))?;
    pair.client.ip(&format!("link set {name}p up\n"))?;
    pair.pod.ip(&format!("link set {name} up\n"))?;
    let up_at = monotonic_now();
    if let Some(agent) = held_up {
        wait_until(up_at, HELD_UP)?;
        agent.process().signal(Signal::CONT)?;
    }
    let unwatched_at = AtomicU64::new(up_at);
    await_condition("the program on a new interface", NOTICED, || {
        let looked_at = monotonic_now();
        if !is_watched(&pair.pod, name) {
            unwatched_at.store(looked_at, Ordering::Relaxed);
            return false;
        }
        true
    })?;
    if let (Some(agent), Some(before)) = (held_up, blind_before) {
        let told = Duration::from_millis(blind(agent)? - before);
        ensure!(told >= HELD_UP, "held up for {HELD_UP:?}, it tells of {told:?}");
    }
    let held_up = held_up.map_or(Duration::ZERO, |_| HELD_UP);
    Ok(Duration::from_nanos(unwatched_at.into_inner() - up_at).max(held_up))
}

#[test]
fn no_interface_that_comes_and_goes_under_load_leaves_a_drain_quiet() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig { backlog: 1000, ..ServerConfig::default() }).unwrap();
    let agent = Agent::start(&pair.pod, config()).unwrap();
    let call = agent.drain().unwrap();
    await_drain(&agent).unwrap();
    let load = PacedClient::start(&pair.client, pair.targets(PORT), 200).unwrap();
    let mut unwatched = Duration::ZERO;
    let mut last_at = 0;
    for number in 0..INTERFACES {
        let name = format!("new{number}");
        unwatched += appear(&pair, &name, (number % 10 == 0).then_some(&agent)).unwrap();
        last_at = monotonic_now();
        pair.pod.ip(&format!("link delete {name}\n")).unwrap();
    }
    assert!(call.answered().unwrap().is_none(), "the drain did not last as long as the changes");
    load.stop().unwrap();
    let answer = call.wait(SOON).unwrap();
    let verdict = &answer.verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"unverified".into(), &false.into()), "{verdict}");
    let held = Duration::from_nanos(answer.answered_at - last_at);
    assert!(held >= QUIET, "the drain ended {held:?} after an interface was new");
    let blind = Duration::from_millis(verdict["sensor"]["blindMs"].as_u64().unwrap());
    println!("unwatched for at least {unwatched:?} in all, {blind:?} by the agent");
    assert!(blind >= unwatched, "{blind:?} by the agent, in truth at least {unwatched:?}");
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], true, "{status}");
    assert!(status["sensor"]["blindMs"].as_u64() >= verdict["sensor"]["blindMs"].as_u64(), "{status}");
    assert!(agent.metrics().unwrap().contains("lastsyn_sensor_blind_seconds "));

    // The next one has no gap.
    let verdict = agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["blindMs"]), (&"quiet".into(), &0.into()), "{verdict}");
}

#[test]
fn fifty_interfaces_that_come_and_go_at_once_leave_no_drain_quiet() {
    /// 50 interfaces, added and removed so many times: 200 of each.
    const ROUNDS: u32 = 4;
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig { backlog: 1000, ..ServerConfig::default() }).unwrap();
    let agent = Agent::start(&pair.pod, config()).unwrap();
    let call = agent.drain().unwrap();
    await_drain(&agent).unwrap();
    let load = PacedClient::start(&pair.client, pair.targets(PORT), 200).unwrap();
    let ends = || (0..25).flat_map(|number| [format!("a{number}"), format!("b{number}")]);
    let pair_up = |number| {
        format!("link add a{number} type veth peer name b{number}\nlink set a{number} up\nlink set b{number} up\n")
    };
    let up = (0..25).map(pair_up).collect::<Vec<_>>().concat();
    let gone = (0..25).map(|number| format!("link delete a{number}\n")).collect::<Vec<_>>().concat();
    let mut unwatched = Duration::ZERO;
    for _ in 0..ROUNDS {
        // Held up, it watches none of them: how long at least is known.
        agent.process().signal(Signal::STOP).unwrap();
        pair.pod.ip(&up).unwrap();
        let all_up_at = monotonic_now();
        wait_until(all_up_at, HELD_UP).unwrap();
        assert!(ends().all(|end| !is_watched(&pair.pod, &end)));
        unwatched += Duration::from_nanos(monotonic_now() - all_up_at);
        agent.process().signal(Signal::CONT).unwrap();
        await_condition("programs on all of them", SOON, || ends().all(|end| is_watched(&pair.pod, &end))).unwrap();
        pair.pod.ip(&gone).unwrap();
    }
    assert!(call.answered().unwrap().is_none(), "the drain did not last as long as the changes");
    load.stop().unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"unverified".into(), &false.into()), "{verdict}");
    let blind = Duration::from_millis(verdict["sensor"]["blindMs"].as_u64().unwrap());
    println!("unwatched for at least {unwatched:?} in all, {blind:?} by the agent");
    assert!(blind >= unwatched, "{blind:?} by the agent, in truth at least {unwatched:?}");
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["healthy"], true, "{status}");
    assert_eq!(status["sensor"]["interfaces"].as_array().unwrap().len(), 2, "{status}");
}

#[test]
fn a_new_interface_is_watched_at_rest_too_and_its_syns_are_counted() {
    let counted = Counted::start().unwrap();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    // Nobody looks at the agent meanwhile.
    appear(&counted.pair, "new0", None).unwrap();
    let sender = lastsyn_tests::raw::Sender::open(&counted.pair.client, "new0p").unwrap();
    let hardware = counted.pair.pod.hardware_address("new0").unwrap();
    let counts = counted.of(|| {
        for syn in counted.syns(40_000) {
            sender.send(&syn.between([2, 0, 0, 0, 7, 7], hardware))?;
        }
        Ok(())
    });
    assert_eq!(counts.unwrap().map(|counts| (counts.new, counts.sum())), [(1, 1); 2]);
}

#[test]
fn fifty_interfaces_are_watched_and_none_is_counted_twice() {
    let counted = Counted::with(Pair::new().unwrap(), config()).unwrap();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..25 {
                let (one, other) = (format!("a{number}"), format!("b{number}"));
                let lines =
                    format!("link add {one} type veth peer name {other}\nlink set {one} up\nlink set {other} up\n");
                counted.pair.pod.ip(&lines).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            assert!(counted.agent.status().is_ok(), "the agent answers meanwhile");
        }
    });
    await_condition("programs on all of them", SOON, || {
        (0..25).all(|number| ["a", "b"].iter().all(|end| is_watched(&counted.pair.pod, &format!("{end}{number}"))))
    })
    .unwrap();
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["sensor"]["interfaces"].as_array().unwrap().len(), 52, "{status}");
    let counts = counted.segments(&counted.syns(40_000)).unwrap();
    assert_eq!(counts.map(|counts| (counts.new, counts.sum())), [(1, 1); 2]);
}

#[test]
fn a_program_that_is_taken_away_in_a_drain_is_back_long_before_its_end() {
    let counted = Counted::with(Pair::new().unwrap(), config().env("LASTSYN_DRAIN_MIN_WAIT", "60s")).unwrap();
    let own = programs_on(&counted.pair.pod, INTERFACE).unwrap();
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent).unwrap();
    // Nobody looks at the agent meanwhile, and the drain's own next reading is a minute away.
    detach(own[0]).unwrap();
    let detached_at = monotonic_now();
    await_condition("the program", SOON, || is_watched(&counted.pair.pod, INTERFACE)).unwrap();
    assert!(call.answered().unwrap().is_none());
    let away = Duration::from_nanos(monotonic_now() - detached_at);
    println!("back after {away:?}");
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["state"], "draining", "{status}");
}
