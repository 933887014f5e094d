//! Every SYN to a watched port is counted once, in its own slot, whatever becomes of it; nothing else is counted there.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "a failing helper fails its test")]

use std::{
    net::{IpAddr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition,
    counters::{Counters, interface_counters},
    pair::{CLIENT_V4, CLIENT_V6, INTERFACE},
    prove::syns::Flood,
    raw::{ExtensionHeader, Segment, Sender},
};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

const SOON: Duration = Duration::from_secs(10);
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const A: u16 = 80;
const B: u16 = 8080;
/// Nothing of the agent's configuration names it.
const UNWATCHED: u16 = 9000;

#[test]
fn connects_among_data_are_counted_exactly() {
    let pair = Pair::new().unwrap();
    let _servers = [A, B, UNWATCHED].map(|port| serve(&pair, port).unwrap());
    let agent = start(&pair, Some("80,8080")).unwrap();
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();
    let [a_v4, a_v6, b_v4] = [pair.targets(A)[0], pair.targets(A)[1], pair.targets(B)[0]];
    let unwatched = pair.targets(UNWATCHED);
    let received_before = interface_counters(&pair.pod, INTERFACE).unwrap().received;

    // 1,000 and 500 and 300, each spread evenly over the whole; and 100 to a port that nobody watches.
    let (connects, segments) = (1900, 10_000);
    let mut tried = [0; 4];
    pair.client.run(|| {
        for number in 0..connects {
            let (kind, target) = match number % 19 {
                0..10 => (0, a_v4),
                10..15 => (1, a_v6),
                15..18 => (2, b_v4),
                _ => (3, unwatched[number % 2]),
            };
            TcpStream::connect_timeout(&target, SOON).unwrap();
            tried[kind] += 1;
            for segment in segments * number / connects..segments * (number + 1) / connects {
                let target = [a_v4, a_v6, b_v4][segment % 3];
                sender.send(&data(target)).unwrap();
            }
        }
    });
    assert_eq!(tried, [1000, 500, 300, 100]);
    let received = interface_counters(&pair.pod, INTERFACE).unwrap().received - received_before;
    assert!(received >= 11_900, "{received} packets: not all of the data reached the pod");
    assert_eq!(Counters::of(&pair.client).unwrap().tcp_ext("TCPSynRetrans"), 0, "the scene lost a SYN");

    let status = agent.status_of_now().unwrap();
    assert_eq!(of_port(&status, A), [new(1000), new(500)]);
    assert_eq!(of_port(&status, B), [new(300), new(0)]);
    assert_eq!(counts(&status, UNWATCHED, "IPv4"), None, "{status}");
    let metrics = agent.metrics().unwrap();
    for (port, family, count) in [(A, "IPv4", 1000), (A, "IPv6", 500), (B, "IPv4", 300), (B, "IPv6", 0)] {
        let line = format!("lastsyn_attempts_total{{port=\"{port}\",family=\"{family}\",class=\"new\"}} {count}\n");
        assert!(metrics.contains(&line), "no {line}in {metrics}");
    }
    assert!(!metrics.contains("9000"), "{metrics}");
}

#[test]
fn connects_that_overflow_the_backlog_are_counted() {
    let pair = Pair::new().unwrap();
    let config = ServerConfig { accept: false, backlog: 1, ..ServerConfig::default() };
    let _server = Server::start(&pair.pod, config).unwrap();
    let agent = start(&pair, None).unwrap();
    let retransmitted = || Counters::of(&pair.client).unwrap().tcp_ext("TCPSynRetrans");

    let _connecting: Vec<Socket> = (0..8).map(|_| begin_to_connect(&pair, pair.targets(A)[0]).unwrap()).collect();
    await_condition("overflows", SOON, || Counters::of(&pair.pod).unwrap().tcp_ext("ListenOverflows") >= 6).unwrap();

    // The clients of dropped SYNs try again after a second. These are SYNs too, so the count is looked at between two
    // looks at theirs.
    let before = retransmitted();
    let [v4, v6] = of_port(&agent.status_of_now().unwrap(), A);
    let after = retransmitted();
    assert!((8 + before..=8 + after).contains(&v4.new), "{v4:?} with {before} to {after} retransmissions");
    assert_eq!((v4.since(new(v4.new)), v6), (new(0), new(0)));
}

#[test]
fn a_flood_that_is_answered_with_cookies_is_counted() {
    let pair = Pair::new().unwrap();
    pair.pod.set_sysctl("net.ipv4.tcp_max_syn_backlog", "64").unwrap();
    let _server = Server::start(&pair.pod, ServerConfig { backlog: 64, ..ServerConfig::default() }).unwrap();
    let agent = start(&pair, None).unwrap();
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();

    for number in 0..2500 {
        let address = if number % 2 == 0 { IpAddr::from([198, 51, 100, 7]) } else { "2001:db8::7".parse().unwrap() };
        let target = pair.targets(A)[usize::from(number % 2)];
        sender.send(&pair.syn((address, 20_000 + number).into(), target)).unwrap();
    }

    await_condition("cookies", SOON, || Counters::of(&pair.pod).unwrap().tcp_ext("SyncookiesSent") >= 2000).unwrap();
    assert_eq!(of_port(&agent.status_of_now().unwrap(), A), [new(1250), new(1250)]);
}

#[test]
fn every_syn_of_a_flood_at_full_rate_is_counted_once() {
    // `cargo xtask prove syns` sends a million.
    let flood = Flood::send(40_000).unwrap();
    println!("{flood:?}");
    flood.check().unwrap();
}

#[test]
fn a_listener_that_appears_is_counted_from_then_on() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair, None).unwrap();
    let connect = |times: usize| {
        for target in pair.targets(B) {
            for _ in 0..times {
                // Refused while nobody listens.
                drop(pair.client.run(|| TcpStream::connect_timeout(&target, SOON)));
            }
        }
    };
    connect(10);
    let status = agent.status_of_now().unwrap();
    assert_eq!(status["listeners"], Value::Array(Vec::new()), "{status}");

    let _server = serve(&pair, B).unwrap();
    await_condition("the listener in the status", SOON, || {
        agent.status().is_ok_and(|status| counts(&status, B, "IPv4").is_some())
    })
    .unwrap();
    connect(50);
    let status = agent.status_of_now().unwrap();
    assert_eq!(of_port(&status, B), [new(50), new(50)]);
    assert_eq!(status["listeners"].as_array().map(Vec::len), Some(1), "{status}");
}

#[test]
fn a_packet_that_hides_its_port_may_be_for_any_listener() {
    let pair = Pair::new().unwrap();
    let agent = start(&pair, Some("80,8080")).unwrap();
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();
    // An authentication header (RFC 4302), behind which nothing is looked for.
    let authentication = ExtensionHeader { kind: 51, body: vec![0; 22] };
    let hidden = Segment { extension_headers: vec![authentication], ..syn(&pair, pair.targets(A)[1]) };
    let ages = || {
        let status = agent.status_of_now().unwrap();
        let listeners = status["listeners"].as_array().unwrap().clone();
        let families = listeners.iter().flat_map(|listener| listener["families"].as_array().unwrap().clone());
        families.map(|family| family["lastAttemptAgoMs"].is_u64()).collect::<Vec<bool>>()
    };
    assert_eq!(ages(), [false, false, false, false]);
    sender.send(&hidden).unwrap();
    assert_eq!(ages(), [false, true, false, true], "over IPv4 and IPv6, for each of the ports");
}

/// An agent that watches a list of ports, or whatever listens.
fn start(pair: &Pair, watch: Option<&str>) -> Result<Agent> {
    let agent =
        Agent::start(&pair.pod, AgentConfig::default().env("LASTSYN_LISTENERS_WATCH", watch.unwrap_or("auto")))?;
    let status = agent.status_of_now()?;
    ensure!(status["sensor"]["healthy"] == true, "the agent has no sensor: {status}");
    Ok(agent)
}

/// A server that keeps up with a client that does not wait for it.
fn serve(pair: &Pair, port: u16) -> Result<Server> {
    Server::start(&pair.pod, ServerConfig { port, backlog: 2000, ..ServerConfig::default() })
}

/// A SYN from a stranger, which stays half-open.
fn syn(pair: &Pair, target: SocketAddr) -> Segment {
    let stranger: IpAddr =
        if target.is_ipv4() { [198, 51, 100, 7].into() } else { [0x2001, 0xdb8, 0, 0, 0, 0, 0, 7].into() };
    pair.syn(SocketAddr::new(stranger, 40_000), target)
}

/// Data from the client that belongs to no connection.
fn data(target: SocketAddr) -> Segment {
    let source = if target.is_ipv4() { IpAddr::from(CLIENT_V4) } else { IpAddr::from(CLIENT_V6) };
    let hardware = (lastsyn_tests::pair::CLIENT_HARDWARE, lastsyn_tests::pair::POD_HARDWARE);
    Segment::data(SocketAddr::new(source, 1024), target, b"data").between(hardware.0, hardware.1)
}

fn begin_to_connect(pair: &Pair, target: SocketAddr) -> Result<Socket> {
    pair.client.run(|| {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&target.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            outcome => outcome.map(|()| socket).context("no SYN was sent"),
        }
    })
}

fn of_port(status: &Value, port: u16) -> [Counts; 2] {
    FAMILIES.map(|family| {
        counts(status, port, family).unwrap_or_else(|| panic!("port {port} over {family} is not counted: {status}"))
    })
}

fn new(count: u64) -> Counts {
    Counts::new(count)
}
