//! Who sends SYNs while a drain runs: right counts for each source, bounded whatever comes, and nothing kept at rest.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result};
use lastsyn_tests::{
    AgentConfig, Counted, Pair, Server, ServerConfig,
    agent::{DrainCall, counts},
    await_condition,
    counted::PORT,
    pair::{POD_V4, POD_V6},
    raw::Segment,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
/// How many sources the programs keep (`MOST_SOURCES` in `ebpf/common/src/sources.rs`).
const KEPT: u64 = 1024;
/// How many a status or verdict lists.
const LISTED: usize = 20;

fn scene(how: &str) -> Counted {
    scene_with(AgentConfig::default().env("LASTSYN_REPORT_SOURCES", how))
}

fn scene_with(config: AgentConfig) -> Counted {
    let config = config.env("LASTSYN_DRAIN_QUIET_PERIOD", "2s").env("LASTSYN_DRAIN_HANDSHAKE_GRACE", "0s");
    Counted::with(Pair::new().unwrap(), config).unwrap()
}

/// The hook is called, and the agent says so.
fn drain(counted: &Counted) -> DrainCall {
    let call = counted.agent.drain().unwrap();
    let draining =
        || counted.agent.status().is_ok_and(|status| status.get("state").is_some_and(|state| state == "draining"));
    await_condition("the drain", SOON, draining).unwrap();
    call
}

/// A SYN from an address and port, to the pod's address of its family.
fn syn(counted: &Counted, from: IpAddr, port: u16) -> Segment {
    let to: IpAddr = if from.is_ipv4() { POD_V4.into() } else { POD_V6.into() };
    counted.pair.syn(SocketAddr::new(from, port), SocketAddr::new(to, PORT))
}

/// So many SYNs from an address, each from another port.
fn send(counted: &Counted, from: &str, count: u16) {
    for port in 0..count {
        counted.sender.send(&syn(counted, from.parse().unwrap(), 20_000 + port)).unwrap();
    }
}

/// What a status or verdict says of each source: how many attempts.
fn attempts(of: &Value) -> Result<BTreeMap<String, u64>> {
    let list = of.pointer("/sources/list").and_then(Value::as_array).with_context(|| format!("no sources in {of}"))?;
    let of_one = |source: &Value| {
        let expected = if source["from"].as_str()?.contains(':') { "IPv6" } else { "IPv4" };
        assert_eq!((&source["family"], &source["port"]), (&expected.into(), &PORT.into()), "{source}");
        Some((source["from"].as_str()?.to_owned(), source["attempts"].as_u64()?))
    };
    list.iter().map(|source| of_one(source).with_context(|| format!("a source is {source}"))).collect()
}

fn expected<const N: usize>(of: [(&str, u64); N]) -> BTreeMap<String, u64> {
    of.into_iter().map(|(from, count)| (from.to_owned(), count)).collect()
}

#[test]
fn each_source_has_its_own_count_over_both_families() {
    let counted = scene("full");
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    send(&counted, "198.51.100.1", 9);
    send(&counted, "2001:db8:0:9::1", 9);
    let call = drain(&counted);
    for (from, count) in [
        ("198.51.100.7", 3),
        ("198.51.100.8", 5),
        ("203.0.113.7", 1),
        ("2001:db8:0:1::7", 2),
        ("2001:db8:0:1:ffff::8", 4),
        ("2001:db8:0:2::7", 1),
    ] {
        send(&counted, from, count);
    }
    // Sent again: an attempt as well.
    send(&counted, "203.0.113.7", 1);
    let expected = expected([
        ("198.51.100.7", 3),
        ("198.51.100.8", 5),
        ("203.0.113.7", 2),
        ("2001:db8:0:1::/64", 6),
        ("2001:db8:0:2::/64", 1),
    ]);
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(attempts(&status).unwrap(), expected, "{status}");
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(attempts(&verdict).unwrap(), expected, "{verdict}");
    let newest = &verdict["sources"]["list"][0];
    assert_eq!((newest["from"].as_str(), &newest["node"]), (Some("203.0.113.7"), &Value::Null), "{verdict}");
    assert_eq!(newest["sinceWithdrawal"], Value::Null, "no cluster has withdrawn the pod: {verdict}");
    assert!(newest["lastAgoMs"].as_u64().unwrap() >= 2000, "{verdict}");
    assert_eq!((&verdict["sources"]["more"], &verdict["sources"]["forgotten"]), (&0.into(), &0.into()), "{verdict}");
    // The same in the status afterwards, and in no metric.
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["sources"], Value::Null, "{status}");
    assert_eq!(status["verdict"]["sources"], verdict["sources"], "{status}");
    let metrics = counted.agent.metrics().unwrap();
    assert!(!metrics.contains("198.51.100") && !metrics.contains("2001:db8"), "{metrics}");
}

#[test]
fn of_clients_outside_only_the_network_is_told() {
    let counted = scene("masked");
    let call = drain(&counted);
    for from in ["198.51.100.7", "198.51.100.8", "198.51.101.7", "2001:db8:1:1::7", "2001:db8:1:2::7", "2001:db8:2::7"]
    {
        send(&counted, from, 2);
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    let expected =
        expected([("198.51.100.0/24", 4), ("198.51.101.0/24", 2), ("2001:db8:1::/48", 4), ("2001:db8:2::/48", 2)]);
    assert_eq!(attempts(&verdict).unwrap(), expected, "{verdict}");
    assert_eq!(counts(&verdict, PORT, "IPv4").unwrap().refused, 6, "nothing listened: {verdict}");
}

#[test]
fn only_what_holds_a_drain_is_of_a_source() {
    let config = AgentConfig::default().env("LASTSYN_REPORT_SOURCES", "full");
    let counted = scene_with(config.env("LASTSYN_LISTENERS_IGNORE_SOURCES", "203.0.113.0/24"));
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let call = drain(&counted);
    send(&counted, "203.0.113.7", 5);
    send(&counted, "198.51.100.7", 1);
    // To a port that nobody watches.
    let other = syn(&counted, Ipv4Addr::new(198, 51, 100, 9).into(), 20_000);
    counted.sender.send(&Segment { destination: SocketAddr::new(POD_V4.into(), PORT + 1), ..other }).unwrap();
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(attempts(&verdict).unwrap(), expected([("198.51.100.7", 1)]), "{verdict}");
    assert_eq!(counts(&verdict, PORT, "IPv4").unwrap().ignored, 5, "{verdict}");
}

#[test]
fn more_sources_than_are_kept_give_way_oldest_first_and_it_is_said() {
    const SENT: u64 = 1500;
    let counted = scene("full");
    let _server = Server::start(&counted.pair.pod, ServerConfig { backlog: 4096, ..ServerConfig::default() }).unwrap();
    let call = drain(&counted);
    let address = |number: u64| -> IpAddr {
        let number = u32::try_from(number).unwrap();
        if number % 2 == 0 {
            Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + number).into()
        } else {
            Ipv6Addr::from_bits(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).to_bits() + (u128::from(number) << 64))
                .into()
        }
    };
    for number in 0..SENT {
        counted.sender.send(&syn(&counted, address(number), 20_000)).unwrap();
    }
    let told = |of: &Value| {
        let number = |name: &str| of["sources"][name].as_u64().unwrap();
        let listed = attempts(of).unwrap();
        (listed, number("more"), number("forgotten"))
    };
    let status = counted.agent.status_of_now().unwrap();
    let (listed, more, forgotten) = told(&status);
    let kept = listed.len() as u64 + more;
    assert_eq!(listed.len(), LISTED, "{status}");
    assert!((KEPT / 2..=KEPT).contains(&kept), "{kept} are kept: {status}");
    assert_eq!(kept + forgotten, SENT, "{status}");
    let newest: Vec<_> = (SENT - 20..SENT).map(address).map(named).collect();
    assert!(newest.iter().all(|newest| listed.get(newest) == Some(&1)), "{newest:?}: {status}");
    // The first of all has given way: what comes of it now is all that is known of it. The last has not.
    for number in [0, SENT - 1] {
        counted.sender.send(&syn(&counted, address(number), 30_000)).unwrap();
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    let (listed, _, forgotten_then) = told(&verdict);
    assert_eq!(listed.get(&named(address(0))), Some(&1), "{verdict}");
    assert_eq!(listed.get(&named(address(SENT - 1))), Some(&2), "{verdict}");
    assert!(forgotten_then >= forgotten, "{verdict}");
    let all: u64 = ["IPv4", "IPv6"].map(|family| counts(&verdict, PORT, family).unwrap().sum()).iter().sum();
    assert_eq!(all, SENT + 2, "every SYN is counted, whoever sent it: {verdict}");
}

/// As it is told in full.
fn named(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("{}/64", Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[test]
fn nothing_is_kept_at_rest_nor_from_one_drain_to_the_next() {
    let counted = scene("full");
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    send(&counted, "198.51.100.1", 3);
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["sources"], Value::Null, "{status}");
    let call = drain(&counted);
    send(&counted, "198.51.100.2", 3);
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(attempts(&verdict).unwrap(), expected([("198.51.100.2", 3)]), "{verdict}");
    send(&counted, "198.51.100.3", 3);
    let call = drain(&counted);
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(attempts(&status).unwrap(), expected([]), "{status}");
    send(&counted, "198.51.100.2", 1);
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(attempts(&verdict).unwrap(), expected([("198.51.100.2", 1)]), "{verdict}");
    assert_eq!(verdict["sources"]["forgotten"], 0, "{verdict}");
}

#[test]
fn nothing_is_kept_where_the_operator_does_not_want_it() {
    let counted = scene("off");
    let call = drain(&counted);
    send(&counted, "198.51.100.7", 2);
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["sources"], Value::Null, "{status}");
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sources"]), (&"quiet".into(), &Value::Null), "{verdict}");
    assert_eq!(counts(&verdict, PORT, "IPv4").unwrap().refused, 2, "{verdict}");
}
