//! S7: on SIGTERM the agent stays while a drain runs or a watched listener is open, at most to the bound and `stopReserve`.
//! It delays the pod's deletion for nothing else.

use std::time::Duration;

use anyhow::{Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, HaProxy, Outcome, PacedClient, Pair, Server, ServerConfig, await_condition, monotonic_now,
    prove::wait_until,
};

const SOON: Duration = Duration::from_secs(10);
/// Much longer than it takes to leave, and much shorter than the bound.
const AT_ONCE: Duration = Duration::from_secs(5);

fn config(max_wait: &str, stop_reserve: &str) -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", "400ms")
        .env("LASTSYN_DRAIN_MAX_WAIT", max_wait)
        .env("LASTSYN_DRAIN_STOP_RESERVE", stop_reserve)
}

/// Asks it to stop, and waits until it says that it knows. Returns a moment before.
fn terminate(agent: &Agent) -> Result<u64> {
    let asked_at = monotonic_now();
    agent.terminate()?;
    agent.process().wait_for_line("SIGTERM", SOON)?;
    Ok(asked_at)
}

/// Waits until the agent has left of itself, and well.
fn left(agent: &Agent, within: Duration) -> Result<()> {
    let status = agent.wait(within)?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(())
}

fn await_drain(agent: &Agent) -> Result<()> {
    await_condition("the drain", SOON, || {
        agent.status().is_ok_and(|status| status.get("state") == Some(&"draining".into()))
    })
}

fn since(moment: u64) -> Duration {
    Duration::from_nanos(monotonic_now() - moment)
}

#[test]
fn nothing_keeps_it_where_nothing_listens() {
    let pair = Pair::new().unwrap();
    let agent = Agent::start(&pair.pod, config("30s", "10s")).unwrap();
    agent.terminate().unwrap();
    left(&agent, AT_ONCE).unwrap();

    // Nor where a drain has ended and its server has gone.
    let server = HaProxy::start(&pair.pod, "a", &[80]).unwrap();
    let agent = Agent::start(&pair.pod, config("30s", "10s")).unwrap();
    agent.drain().unwrap().wait(SOON).unwrap();
    server.soft_stop().unwrap();
    server.wait(SOON).unwrap();
    agent.terminate().unwrap();
    left(&agent, AT_ONCE).unwrap();
}

#[test]
fn an_open_listener_keeps_it_until_it_closes() {
    let pair = Pair::new().unwrap();
    let server = HaProxy::start(&pair.pod, "a", &[80]).unwrap();
    let agent = Agent::start(&pair.pod, config("30s", "10s")).unwrap();
    let asked_at = terminate(&agent).unwrap();
    wait_until(asked_at, Duration::from_millis(500)).unwrap();
    assert_eq!(agent.status().unwrap()["state"], "serving");

    // Where the agent is a container like the others, kubelet stops it while the server's hook has yet to be called.
    let hook = agent.hook(["--json"]).unwrap();
    hook.wait_for_success(SOON).unwrap();
    assert!(agent.process().is_running().unwrap());

    server.soft_stop().unwrap();
    server.wait(SOON).unwrap();
    left(&agent, AT_ONCE).unwrap();
}

#[test]
fn a_drain_keeps_it_until_its_verdict() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let config = config("30s", "10s").env("LASTSYN_DRAIN_MIN_WAIT", "1200ms");
    let agent = Agent::start(&pair.pod, config).unwrap();
    let [over_http, gone] = [agent.drain().unwrap(), agent.drain().unwrap()];
    await_drain(&agent).unwrap();
    terminate(&agent).unwrap();
    gone.hang_up();
    server.close().unwrap();

    let answer = over_http.wait(SOON).unwrap();
    assert!(answer.answered_at - answer.called_at >= 1_200_000_000, "{answer:?}");
    assert_eq!((answer.status, &answer.verdict["reason"]), (200, &"quiet".into()));
    left(&agent, AT_ONCE).unwrap();
}

#[test]
fn a_listener_that_never_closes_keeps_it_to_the_bound_and_the_reserve() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = Agent::start(&pair.pod, config("700ms", "500ms")).unwrap();
    let asked_at = terminate(&agent).unwrap();
    left(&agent, SOON).unwrap();
    assert!(since(asked_at) >= Duration::from_millis(1200), "{:?}", since(asked_at));
}

#[test]
fn the_bound_is_that_of_the_drain_that_ran() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let client = PacedClient::start(&pair.client, pair.targets(80), 100).unwrap();
    let agent = Agent::start(&pair.pod, config("2500ms", "500ms")).unwrap();
    let call = agent.drain().unwrap();
    await_drain(&agent).unwrap();
    wait_until(call.called_at(), Duration::from_millis(1500)).unwrap();
    let asked_at = terminate(&agent).unwrap();

    let answer = call.wait(SOON).unwrap();
    assert_eq!((answer.status, &answer.verdict["reason"]), (200, &"bound".into()));
    left(&agent, SOON).unwrap();
    assert!(since(answer.called_at) >= Duration::from_secs(3), "{:?}", since(answer.called_at));
    // Counted from the signal it would be longer than this.
    assert!(since(asked_at) < Duration::from_secs(3), "{:?}", since(asked_at));
    let attempts = client.stop().unwrap();
    assert!(attempts.iter().all(|attempt| attempt.outcome == Outcome::Served { by: "server".to_owned() }));
}
