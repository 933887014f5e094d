//! `listeners.ignoreSources`: SYNs from these networks hold no drain, and are counted apart, never silently.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use lastsyn_tests::{
    AgentConfig, Counted, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition, connect_once,
    counted::PORT,
    monotonic_now,
    pair::{CLIENT_V4, CLIENT_V6, POD_V4, POD_V6},
    raw::{ExtensionHeader, Segment},
};

const SOON: Duration = Duration::from_secs(20);
const IGNORED: &str = "198.51.100.0/25, 203.0.113.9, 2001:db8:0:1::/64, 2001:db8::9";

fn scene(networks: &str, quiet: &str) -> Counted {
    let config = AgentConfig::default()
        .env("LASTSYN_LISTENERS_IGNORE_SOURCES", networks)
        .env("LASTSYN_DRAIN_QUIET_PERIOD", quiet)
        .env("LASTSYN_DRAIN_HANDSHAKE_GRACE", "0s");
    Counted::with(Pair::new().unwrap(), config).unwrap()
}

#[test]
fn exactly_the_addresses_of_the_networks_are_ignored() {
    let counted = scene(IGNORED, "2s");
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    for (source, ignored) in [
        ("198.51.100.0", true),
        ("198.51.100.127", true),
        ("198.51.100.128", false),
        ("198.51.99.255", false),
        ("203.0.113.9", true),
        ("203.0.113.8", false),
        ("2001:db8:0:1::", true),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", true),
        ("2001:db8:0:2::", false),
        ("2001:db8:0:0:ffff::", false),
        ("2001:db8::9", true),
        ("2001:db8::8", false),
    ] {
        let source: IpAddr = source.parse().unwrap();
        let (family, pod): (usize, IpAddr) = if source.is_ipv4() { (0, POD_V4.into()) } else { (1, POD_V6.into()) };
        let syn = counted.pair.syn(SocketAddr::new(source, 40_000), SocketAddr::new(pod, PORT));
        // Behind other headers, too.
        let padding = ExtensionHeader { kind: 60, body: vec![1, 4, 0, 0, 0, 0] };
        let behind = Segment { ip_options: vec![1; 4], extension_headers: vec![padding], ..syn.clone() };
        let mut expected = [Counts::default(); 2];
        expected[family] = if ignored {
            Counts { ignored: 2, ..Counts::default() }
        } else {
            Counts { new: 1, retransmit: 1, ..Counts::default() }
        };
        assert_eq!(counted.segments(&[syn, behind]).unwrap(), expected, "from {source}");
    }
}

#[test]
fn what_is_ignored_is_so_whatever_socket_it_meets() {
    let counted = scene(&format!("{CLIENT_V4}, {CLIENT_V6}"), "2s");
    let ignored = |count| [Counts { ignored: count, ..Counts::default() }; 2];
    let connect = || {
        for target in counted.pair.targets(PORT) {
            connect_once(&counted.pair.client, target, SOON);
        }
        Ok(())
    };
    assert_eq!(counted.of(connect).unwrap(), ignored(1), "nothing listens");
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    assert_eq!(counted.of(connect).unwrap(), ignored(1));
}

#[test]
fn a_drain_does_not_wait_for_what_is_ignored_and_tells_of_it() {
    let counted = scene(&format!("{CLIENT_V4}, {CLIENT_V6}"), "1s");
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let call = counted.agent.drain().unwrap();
    await_condition("the drain", SOON, || counted.agent.status().is_ok_and(|status| status["state"] == "draining"))
        .unwrap();
    // A stranger in between, who is not ignored.
    counted.segments(&counted.syns(40_000)).unwrap();
    let strangers_at = monotonic_now();
    let mut checks = 0;
    while call.answered().unwrap().is_none() {
        for target in counted.pair.targets(PORT) {
            connect_once(&counted.pair.client, target, SOON);
        }
        checks += 1;
    }
    let answer = call.wait(SOON).unwrap();
    let verdict = &answer.verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"quiet".into(), &true.into()), "{verdict}");
    let after = Duration::from_nanos(answer.answered_at.saturating_sub(strangers_at));
    assert!(checks > 10 && after >= Duration::from_millis(900), "{checks} checks, {after:?}");
    for family in ["IPv4", "IPv6"] {
        let told = counts(verdict, PORT, family).unwrap();
        assert_eq!((told.new, told.sum()), (1, 1 + told.ignored), "{verdict}");
        assert!(told.ignored >= 10 && told.ignored <= checks, "{checks} checks, {verdict}");
    }
    let metrics = counted.agent.metrics().unwrap();
    assert!(metrics.contains("family=\"IPv4\",class=\"ignored\"} "), "{metrics}");
}
