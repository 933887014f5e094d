//! E3 on the real kernel: a connection that waits to be accepted and a handshake under way hold the drain, because closing
//! the listener resets them.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{net::SocketAddr, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, Bind, Connection, DrainCall, HaProxy, HaProxyConfig, Pair, Server, ServerConfig, Signal,
    await_condition,
    counters::Counters,
    monotonic_now,
    pair::INTERFACE,
    raw::{ACK, Capture, RST, SYN, Segment, Sender},
    sockets::{SocketState, listeners, tcp_sockets},
};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
/// Shorter than a server defers an accept: then the kernel asks the client once more, and lets the server have the connection.
const QUIET: Duration = Duration::from_millis(500);
const PORT: u16 = 80;
/// Who completes its handshake when it is told to.
const STRANGER: ([u8; 4], u16) = ([198, 51, 100, 7], 40_000);

fn start(pair: &Pair, grace: Duration) -> Agent {
    let config = AgentConfig::default()
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
        .env("LASTSYN_DRAIN_HANDSHAKE_GRACE", format!("{}ms", grace.as_millis()))
        .env("LASTSYN_DRAIN_MAX_WAIT", "60s");
    let agent = Agent::start(&pair.pod, config).unwrap();
    assert_eq!(agent.status_of_now().unwrap()["sensor"]["healthy"], true);
    agent
}

fn await_drain(agent: &Agent) {
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
}

/// Waits until nothing but handshakes holds the drain.
fn await_held_by_handshakes(agent: &Agent) {
    await_condition("a drain that handshakes alone hold", SOON, || {
        agent.status_of_now().is_ok_and(|status| status["drain"]["holding"] == json!(["handshakes"]))
    })
    .unwrap();
}

fn still_held(call: &DrainCall) {
    assert!(call.answered().unwrap().is_none(), "the drain has ended");
}

/// Five connections that nobody accepts, over both families.
fn queue(pair: &Pair) -> Vec<Connection> {
    let targets = pair.targets(PORT).into_iter().cycle().take(5);
    targets.map(|target| Connection::open(&pair.client, target, SOON).unwrap()).collect()
}

#[test]
fn five_connections_that_nobody_accepts_hold_the_drain_until_they_are_taken() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig { accept: false, ..ServerConfig::default() }).unwrap();
    let agent = start(&pair, Duration::ZERO);
    let call = agent.drain().unwrap();
    await_drain(&agent);
    let mut waiting = queue(&pair);
    await_held_by_handshakes(&agent);
    still_held(&call);
    let before = monotonic_now();
    server.accept().unwrap();
    for connection in &mut waiting {
        assert_eq!(connection.request().unwrap(), "server", "none is lost");
    }
    let answer = call.wait(SOON).unwrap();
    assert!(answer.answered_at >= before, "the drain ended before they were taken");
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
    assert!(answer.verdict["heldBy"]["handshakesMs"].as_u64().unwrap() >= 500, "{}", answer.verdict);
}

#[test]
fn five_connections_that_nobody_accepts_hold_the_drain_until_they_are_reset() {
    let pair = Pair::new().unwrap();
    let server = Server::start(&pair.pod, ServerConfig { accept: false, ..ServerConfig::default() }).unwrap();
    let agent = start(&pair, Duration::ZERO);
    let call = agent.drain().unwrap();
    await_drain(&agent);
    let waiting = queue(&pair);
    await_held_by_handshakes(&agent);
    still_held(&call);
    let before = monotonic_now();
    // What a server does that does not wait for the drain's end.
    server.close().unwrap();
    for mut connection in waiting {
        assert!(connection.request().is_err(), "closing the listener resets what waits in its queue");
    }
    let answer = call.wait(SOON).unwrap();
    assert!(answer.answered_at >= before, "the drain ended before they were reset");
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
}

/// A client that has sent its SYN and has the answer.
struct HalfOpen {
    sender: Sender,
    capture: Capture,
    /// The last step of its handshake.
    ack: Segment,
    sent_at: u64,
}

impl HalfOpen {
    fn begin(pair: &Pair) -> Self {
        let (source, target) = (SocketAddr::from(STRANGER), pair.targets(PORT)[0]);
        let sender = Sender::open(&pair.client, INTERFACE).unwrap();
        let capture = Capture::open(&pair.client, INTERFACE).unwrap();
        let syn = pair.syn(source, target);
        sender.send(&syn).unwrap();
        let sent_at = monotonic_now();
        let answer = capture.await_segment(SYN | ACK, Some(target), Some(source), SOON).unwrap();
        let ack = Segment {
            flags: ACK,
            sequence: syn.sequence.wrapping_add(1),
            acknowledgment: answer.sequence.wrapping_add(1),
            tcp_options: Vec::new(),
            ..syn
        };
        Self { sender, capture, ack, sent_at }
    }

    fn is_under_way(pair: &Pair) -> bool {
        let sockets = tcp_sockets(&pair.pod).unwrap();
        sockets.iter().any(|socket| {
            let remote = (socket.remote.ip().to_canonical(), socket.remote.port());
            socket.state == SocketState::SynReceived && remote == (STRANGER.0.into(), STRANGER.1)
        })
    }
}

#[test]
fn a_half_open_handshake_holds_the_drain_for_the_grace_and_no_longer() {
    const GRACE: Duration = Duration::from_secs(4);
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let agent = start(&pair, GRACE);
    let call = agent.drain().unwrap();
    await_drain(&agent);
    let half_open = HalfOpen::begin(&pair);
    await_held_by_handshakes(&agent);
    let answer = call.wait(SOON).unwrap();
    assert!(HalfOpen::is_under_way(&pair), "the kernel has given the handshake up: nothing is shown");
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(half_open.sent_at));
    assert!(held >= GRACE, "the drain ended {held:?} after a handshake began: {}", answer.verdict);
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
}

#[test]
fn a_slow_handshake_is_served_with_the_grace_and_reset_without() {
    for grace in [SOON, Duration::ZERO] {
        let pair = Pair::new().unwrap();
        let server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
        let agent = start(&pair, grace);
        let call = agent.drain().unwrap();
        await_drain(&agent);
        let half_open = HalfOpen::begin(&pair);
        if !grace.is_zero() {
            await_held_by_handshakes(&agent);
            still_held(&call);
            half_open.sender.send(&half_open.ack).unwrap();
        }
        let verdict = call.wait(SOON).unwrap().verdict;
        assert_eq!(verdict["reason"], "quiet", "{verdict}");
        if grace.is_zero() {
            assert!(HalfOpen::is_under_way(&pair));
        }
        server.close().unwrap();
        let request = Segment { payload: b"GET / HTTP/1.0\r\n\r\n".to_vec(), ..half_open.ack.clone() };
        half_open.sender.send(&request).unwrap();
        let (source, target) = (half_open.ack.source, half_open.ack.destination);
        let expected = if grace.is_zero() { RST } else { ACK };
        let answer = half_open.capture.await_segment(expected, Some(target), Some(source), SOON).unwrap();
        assert_eq!(answer.flags & RST != 0, grace.is_zero(), "with a grace of {grace:?}: {answer:?}");
    }
}

/// `HAProxy` with deferred accepts, four threads and four sockets a port, in a pod that answers every SYN with a cookie.
fn haproxy(pair: &Pair, cookies: bool) -> HaProxy {
    // 2: also where there is room.
    pair.pod.set_sysctl("net.ipv4.tcp_syncookies", if cookies { "2" } else { "1" }).unwrap();
    let config = HaProxyConfig {
        name: "a".to_owned(),
        bind: Bind::Dual,
        options: "defer-accept shards 4".to_owned(),
        threads: 4,
        ..HaProxyConfig::default()
    };
    let haproxy = HaProxy::start_as(&pair.pod, &config).unwrap();
    await_condition("four sockets", SOON, || listeners(&pair.pod, PORT).is_ok_and(|all| all.count() == 4)).unwrap();
    haproxy
}

#[test]
fn what_waits_in_any_queue_of_a_real_servers_group_holds_the_drain() {
    let pair = Pair::new().unwrap();
    let haproxy = haproxy(&pair, true);
    let agent = start(&pair, Duration::ZERO);
    let call = agent.drain().unwrap();
    await_drain(&agent);
    haproxy.process().signal(Signal::STOP).unwrap();
    let mut waiting: Vec<Connection> = pair
        .targets(PORT)
        .into_iter()
        .cycle()
        .take(20)
        .map(|target| Connection::open(&pair.client, target, SOON).unwrap())
        .collect();
    let cookies = || Counters::of(&pair.pod).unwrap().tcp_ext("SyncookiesRecv");
    await_condition("cookies", SOON, || cookies() >= 20).unwrap();
    await_held_by_handshakes(&agent);
    still_held(&call);
    let before = monotonic_now();
    haproxy.process().signal(Signal::CONT).unwrap();
    let answer = call.wait(SOON).unwrap();
    assert!(answer.answered_at >= before, "the drain ended before they were taken");
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
    haproxy.soft_stop().unwrap();
    for connection in &mut waiting {
        assert_eq!(connection.request().unwrap(), "a", "one was lost");
    }
}

/// Ten clients connect and do not send their request yet; the server stops with the drain's end; they send it then. Returns
/// the verdict, and how many of them were not served.
fn late_requests(cookies: bool, grace: Duration) -> (Value, usize) {
    let pair = Pair::new().unwrap();
    let haproxy = haproxy(&pair, cookies);
    let agent = start(&pair, grace);
    let call = agent.drain().unwrap();
    await_drain(&agent);
    let targets = pair.targets(PORT).into_iter().cycle().take(10);
    let late: Vec<Connection> = targets.map(|target| Connection::open(&pair.client, target, SOON).unwrap()).collect();
    let verdict = call.wait(SOON).unwrap().verdict;
    haproxy.soft_stop().unwrap();
    await_condition("closed listeners", SOON, || listeners(&pair.pod, PORT).is_ok_and(|mut all| all.next().is_none()))
        .unwrap();
    let served = late.into_iter().map(|mut connection| connection.request());
    let lost = served.filter(|answer| !answer.as_ref().is_ok_and(|by| by == "a")).count();
    let received = Counters::of(&pair.pod).unwrap().tcp_ext("SyncookiesRecv");
    assert_eq!(received >= 10, cookies, "{received} cookies");
    (verdict, lost)
}

#[test]
fn clients_that_send_their_request_late_are_served_by_a_server_that_defers_accepts() {
    for cookies in [false, true] {
        let (verdict, lost) = late_requests(cookies, Duration::from_secs(4));
        assert_eq!((&verdict["reason"], lost), (&"quiet".into(), 0), "with cookies {cookies}: {verdict}");
    }
}

#[test]
fn without_the_grace_a_server_that_defers_accepts_resets_late_clients() {
    let (verdict, lost) = late_requests(false, Duration::ZERO);
    assert_eq!((&verdict["reason"], lost), (&"quiet".into(), 10), "{verdict}");
}
