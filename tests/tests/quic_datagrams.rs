//! QUIC: which datagrams hold a drain, and what becomes of a port where no sensor sees them. What a real client sends is in
//! `quic.rs`.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    net::{SocketAddr, UdpSocket},
    time::Duration,
};

use lastsyn_tests::{
    Agent, AgentConfig, Connection, Host, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const PORT: u16 = 443;
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;

struct Scene {
    agent: Agent,
    socket: UdpSocket,
    pair: Pair,
}

impl Scene {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(change: impl Fn(AgentConfig) -> AgentConfig) -> Self {
        let pair = Pair::new().unwrap();
        let socket = pair.pod.run(|| UdpSocket::bind(("::", PORT))).unwrap();
        let config = AgentConfig::default()
            .env("LASTSYN_LISTENERS_WATCH", "[443/udp]")
            .env("LASTSYN_DRAIN_QUIET_PERIOD", "2s")
            .env("LASTSYN_DRAIN_MAX_WAIT", "8s");
        let three = ["setpriv", "--bounding-set=-all,+bpf,+net_admin,+net_raw", "--inh-caps=-all"];
        let agent = Agent::start(&pair.pod, change(config).through(three)).unwrap();
        Self { agent, socket, pair }
    }

    fn counted(&self) -> [Counts; 2] {
        let status = self.agent.status_of_now().unwrap();
        FAMILIES.map(|family| counts(&status, PORT, family).unwrap())
    }

    /// Sends a datagram over each family.
    fn send(&self, datagram: &[u8]) {
        for target in self.pair.targets(PORT) {
            send(&self.pair.client, target, datagram);
        }
    }
}

fn send(client: &Host, target: SocketAddr, datagram: &[u8]) {
    client.run(|| {
        let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        UdpSocket::bind(any).unwrap().send_to(datagram, target).unwrap();
    });
}

/// The beginning of a QUIC packet, in a datagram as long as a client's first one has to be.
fn quic(first: u8, version: u32) -> Vec<u8> {
    let mut datagram = [&[first][..], &version.to_be_bytes()].concat();
    datagram.resize(1200, 8);
    datagram
}

/// What a verdict or status says of one protocol.
fn listener<'a>(of: &'a Value, protocol: &str) -> &'a Value {
    of["listeners"].as_array().unwrap().iter().find(|listener| listener["protocol"] == protocol).unwrap()
}

#[test]
fn each_datagram_has_its_class() {
    let scene = Scene::new();
    for (name, datagram, expected) in [
        ("Initial", quic(0xc3, VERSION_1), Counts::new(1)),
        ("Initial of version 2", quic(0xd3, VERSION_2), Counts::new(1)),
        ("0-RTT", quic(0xd3, VERSION_1), Counts::new(1)),
        ("another version", quic(0xc3, 0xff00_001d), Counts { opaque: 1, ..Counts::default() }),
        ("Handshake", quic(0xe3, VERSION_1), Counts::default()),
        ("Retry of version 2", quic(0xc3, VERSION_2), Counts::default()),
        ("version negotiation", quic(0xc3, 0), Counts::default()),
        ("a short header", quic(0x43, 9), Counts::default()),
        ("four bytes", vec![0xff; 4], Counts::default()),
        ("nothing", Vec::new(), Counts::default()),
    ] {
        let before = scene.counted();
        scene.send(&datagram);
        // What follows on the same wire is counted after it.
        scene.send(&quic(0xc3, VERSION_1));
        let since = || {
            let mut after = scene.counted();
            for (after, before) in after.iter_mut().zip(before) {
                *after = after.since(before);
            }
            after
        };
        await_condition(name, SOON, || since().iter().all(|since| since.new > expected.new)).unwrap();
        assert_eq!(since(), [expected.plus(Counts::new(1)); 2], "{name}");
    }
}

#[test]
fn a_datagram_that_opens_a_connection_holds_a_drain_and_others_do_not() {
    for (first, reason) in [(0xc3, "bound"), (0x43, "quiet"), (0xe3, "quiet")] {
        let scene = Scene::new();
        let call = scene.agent.drain().unwrap();
        while call.answered().unwrap().is_none() {
            scene.send(&quic(first, VERSION_1));
        }
        let verdict = call.wait(SOON).unwrap().verdict;
        assert_eq!(verdict["reason"], reason, "{first:#x}: {verdict}");
        let told = listener(&verdict, "UDP");
        assert_eq!((&told["port"], &told["closedAtMs"]), (&PORT.into(), &Value::Null), "{verdict}");
        assert_eq!(told["families"][0]["retransmit"], Value::Null, "{verdict}");
    }
}

#[test]
fn a_datagram_for_a_closed_port_is_refused() {
    let Scene { agent, socket, pair } = Scene::new();
    drop(socket);
    for target in pair.targets(PORT) {
        send(&pair.client, target, &quic(0xc3, VERSION_1));
    }
    let refused = |status: &Value| FAMILIES.map(|family| counts(status, PORT, family).unwrap().refused);
    await_condition("the counts", SOON, || refused(&agent.status_of_now().unwrap()) == [1; 2]).unwrap();
}

#[test]
fn tcp_and_quic_on_one_port_are_counted_apart() {
    let scene = Scene::with(|config| config.env("LASTSYN_LISTENERS_WATCH", "[443, 443/udp]"));
    let _server = Server::start(&scene.pair.pod, ServerConfig { port: PORT, ..ServerConfig::default() }).unwrap();
    let new = |status: &Value| ["TCP", "UDP"].map(|protocol| listener(status, protocol)["families"][0]["new"].clone());
    scene.send(&quic(0xc3, VERSION_1));
    await_condition("the datagram", SOON, || new(&scene.agent.status_of_now().unwrap()) == [0, 1]).unwrap();
    for target in scene.pair.targets(PORT) {
        Connection::open(&scene.pair.client, target, SOON).unwrap().request().unwrap();
    }
    assert_eq!(new(&scene.agent.status_of_now().unwrap()), [1, 1]);
    let metrics = scene.agent.metrics().unwrap();
    for port in ["443", "443/udp"] {
        let sample = format!("lastsyn_attempts_total{{port=\"{port}\",family=\"IPv4\",class=\"new\"}} 1");
        assert!(metrics.contains(&sample), "{metrics}");
    }
}

#[test]
fn a_sensor_that_sees_no_datagrams_ends_no_drain_quiet() {
    for strategy in ["packet", "counters"] {
        let scene =
            Scene::with(|config| config.env("LASTSYN_SENSOR_STRATEGY", strategy).env("LASTSYN_DRAIN_MAX_WAIT", "3s"));
        let verdict = scene.agent.drain().unwrap().wait(SOON).unwrap().verdict;
        assert_eq!(verdict["reason"], "bound", "{strategy}: {verdict}");
        let told = verdict["notObserved"].to_string();
        assert!(told.contains(if strategy == "packet" { "443/udp" } else { "not counted one by one" }), "{told}");
    }
}
