//! Each family has its own quiet: a verdict speaks of the families that the pod has an address in, and of no other.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use anyhow::{Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Bind, Connection, Families, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";

#[test]
fn an_ipv4_only_pod_drains() {
    // As container runtimes make pods of an IPv4-only cluster: IPv6 is there, and off.
    a_pod_of_one_family_drains(Families::V4, IPV4, &[("net.ipv6.conf.all.disable_ipv6", "1")]);
}

#[test]
fn an_ipv4_only_pod_with_a_link_local_ipv6_address_drains() {
    a_pod_of_one_family_drains(Families::V4, IPV4, &[]);
}

#[test]
fn an_ipv6_only_pod_drains() {
    a_pod_of_one_family_drains(Families::V6, IPV6, &[]);
}

fn a_pod_of_one_family_drains(families: Families, name: &str, parameters: &[(&str, &str)]) {
    let pair = Pair::with(families).unwrap();
    for (parameter, value) in parameters {
        pair.pod.set_sysctl(parameter, value).unwrap();
    }
    let bind = if families == Families::V4 { Bind::V4 } else { Bind::V6 };
    let _server = Server::start(&pair.pod, ServerConfig { bind, ..ServerConfig::default() }).unwrap();
    let agent = start(&pair).unwrap();
    assert_eq!(families_of(&agent.status_of_now().unwrap()), [name]);

    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    connect(&pair, 0, 3).unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;

    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    assert_eq!(families_of(&verdict), [name]);
    assert_eq!(counts(&verdict, 80, name), Some(Counts::new(3)));
    assert_eq!(verdict["listeners"][0]["families"][0]["quiet"], true, "{verdict}");
}

#[test]
fn a_dual_stack_listener_counts_both_families_apart() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig { bind: Bind::Dual, ..ServerConfig::default() }).unwrap();
    let agent = start(&pair).unwrap();
    assert_eq!(families_of(&agent.status_of_now().unwrap()), [IPV4, IPV6]);

    connect(&pair, 0, 7).unwrap();
    connect(&pair, 1, 5).unwrap();
    let status = agent.status_of_now().unwrap();
    assert_eq!(counts(&status, 80, IPV4), Some(Counts::new(7)));
    assert_eq!(counts(&status, 80, IPV6), Some(Counts::new(5)));

    // A verdict counts from the hook's call on.
    let call = agent.drain().unwrap();
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
    connect(&pair, 1, 2).unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    assert_eq!(counts(&verdict, 80, IPV4), Some(Counts::new(0)));
    assert_eq!(counts(&verdict, 80, IPV6), Some(Counts::new(2)));
}

/// An agent that has found the listener.
fn start(pair: &Pair) -> Result<Agent> {
    let agent = Agent::start(&pair.pod, AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "2s"))?;
    let status = agent.status_of_now()?;
    ensure!(status["sensor"]["healthy"] == true, "the agent has no sensor: {status}");
    Ok(agent)
}

/// Connects a number of times to the pod's first or second address.
fn connect(pair: &Pair, address: usize, times: usize) -> Result<()> {
    let target = pair.targets(80)[address];
    for _ in 0..times {
        assert_eq!(Connection::open(&pair.client, target, SOON)?.request()?, "server");
    }
    Ok(())
}

fn families_of(of: &Value) -> Vec<&str> {
    let listeners = of["listeners"].as_array().map(Vec::as_slice).unwrap_or_default();
    let families = listeners.iter().filter_map(|listener| listener["families"].as_array()).flatten();
    families.filter_map(|family| family["family"].as_str()).collect()
}
