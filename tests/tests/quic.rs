//! QUIC, by a real client: new connections hold a drain, and old ones that only send do not. Single datagrams are in
//! `quic_datagrams.rs`.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::time::Duration;

use lastsyn_tests::{
    Agent, AgentConfig, Pair, QuicClient, QuicServer,
    agent::{Counts, counts},
};

const SOON: Duration = Duration::from_secs(20);
const PORT: u16 = 443;
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

struct Scene {
    agent: Agent,
    client: QuicClient,
    _server: QuicServer,
    pair: Pair,
}

impl Scene {
    fn new() -> Self {
        let pair = Pair::new().unwrap();
        let server = QuicServer::start(&pair.pod, PORT).unwrap();
        let config = AgentConfig::default()
            .env("LASTSYN_LISTENERS_WATCH", "[443/udp]")
            .env("LASTSYN_DRAIN_QUIET_PERIOD", "2s")
            .env("LASTSYN_DRAIN_MAX_WAIT", "8s");
        let agent = Agent::start(&pair.pod, config).unwrap();
        let client = QuicClient::start(&pair.client, &server).unwrap();
        Self { agent, client, _server: server, pair }
    }

    /// One more connection over each family.
    fn connect(&self) {
        for target in self.pair.targets(PORT) {
            self.client.connect(target).unwrap();
        }
    }
}

#[test]
fn new_connections_hold_a_drain() {
    let scene = Scene::new();
    let call = scene.agent.drain().unwrap();
    let mut connections = 0;
    while call.answered().unwrap().is_none() {
        scene.connect();
        connections += 1;
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "bound", "{verdict}");
    for family in FAMILIES {
        assert!(counts(&verdict, PORT, family).unwrap().new + 1 >= connections, "{connections}: {verdict}");
    }
}

#[test]
fn old_connections_that_only_send_do_not() {
    let scene = Scene::new();
    scene.connect();
    let status = scene.agent.status_of_now().unwrap();
    let before = FAMILIES.map(|family| counts(&status, PORT, family).unwrap());
    assert!(before.iter().all(|counts| counts.new >= 1 && counts.sum() == counts.new), "{before:?}");
    let call = scene.agent.drain().unwrap();
    let mut sent = 0;
    while call.answered().unwrap().is_none() {
        scene.client.send().unwrap();
        sent += 1;
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    assert!(sent > 10, "{sent}");
    for family in FAMILIES {
        assert_eq!(counts(&verdict, PORT, family), Some(Counts::default()), "{verdict}");
    }
}
