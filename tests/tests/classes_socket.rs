//! The class of a SYN by the socket that it meets: one test for each row of the table of stimuli where that decides.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lastsyn_tests::{
    AgentConfig, Bind, Connection, Counted, Outcome, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition, connect_from, connect_once,
    counted::PORT,
    counters::Counters,
    pair::{CLIENT_V4, CLIENT_V6, INTERFACE},
    raw::{Capture, SYN, Segment},
    sockets::{SocketState, tcp_sockets},
};
use socket2::{Domain, Protocol, Socket, Type};

const SOON: Duration = Duration::from_secs(10);
const NOTHING: [Counts; 2] =
    [Counts { new: 0, retransmit: 0, refused: 0, join: 0, opaque: 0, stray: 0, ignored: 0, probe: 0 }; 2];
/// `IPPROTO_MPTCP` in `linux/in.h`.
const MPTCP: Protocol = Protocol::MPTCP;

#[test]
fn a_connect_to_an_open_port_is_new() {
    for bind in [Bind::Separate, Bind::Dual] {
        let counted = Counted::start().unwrap();
        let _server = serve(&counted, ServerConfig { bind, ..ServerConfig::default() });
        assert_eq!(connects(&counted).unwrap(), each(Counts::new(1)), "{bind:?}");
    }
}

#[test]
fn a_connect_to_a_closed_port_is_refused() {
    let counted = Counted::start().unwrap();
    assert_eq!(connects(&counted).unwrap(), each(refused(1)));
}

#[test]
fn a_connect_to_a_listener_of_the_other_family_is_refused() {
    for (bind, expected) in [(Bind::V6, [refused(1), Counts::new(1)]), (Bind::V4, [Counts::new(1), refused(1)])] {
        let counted = Counted::start().unwrap();
        let _server = serve(&counted, ServerConfig { bind, ..ServerConfig::default() });
        assert_eq!(connects(&counted).unwrap(), expected, "{bind:?}");
    }
}

#[test]
fn a_connect_to_a_listener_on_another_address_is_refused() {
    let counted = Counted::start().unwrap();
    counted.pair.pod.ip(&format!("address add 10.0.0.77/32 dev {INTERFACE}\n")).unwrap();
    let _listener = counted.pair.pod.run(|| std::net::TcpListener::bind(("10.0.0.77", PORT))).unwrap();
    assert_eq!(connects(&counted).unwrap(), each(refused(1)));
}

#[test]
fn connects_that_overflow_the_backlog_are_new_and_so_are_their_retransmissions() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig { accept: false, backlog: 1, ..ServerConfig::default() });
    let retransmitted = || Counters::of(&counted.pair.client).unwrap().tcp_ext("TCPSynRetrans");
    let target = counted.pair.targets(PORT)[0];
    let _connecting: Vec<Socket> = (0..8).map(|_| begin_to_connect(&counted.pair, target).unwrap()).collect();
    await_condition("six retransmissions", SOON, || retransmitted() >= 6).unwrap();
    // There is no handshake that they could belong to: each is one more connection that finds no room.
    let before = retransmitted();
    let [v4, v6] = counted.so_far().unwrap();
    let after = retransmitted();
    assert!((8 + before..=8 + after).contains(&v4.new), "{v4:?} with {before} to {after} retransmissions");
    assert_eq!((v4.since(Counts::new(v4.new)), v6), (Counts::default(), Counts::default()));
}

#[test]
fn the_same_syn_three_times_is_one_new_and_two_retransmissions() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    for syn in counted.syns(40_000) {
        let family = usize::from(syn.source.is_ipv6());
        let mut expected = NOTHING;
        expected[family] = Counts { new: 1, retransmit: 2, ..Counts::default() };
        assert_eq!(counted.segments(&[syn.clone(), syn.clone(), syn]).unwrap(), expected);
    }
}

#[test]
fn a_syn_that_begins_anew_from_the_same_port_is_a_retransmission() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    for syn in counted.syns(40_000) {
        let family = usize::from(syn.source.is_ipv6());
        let anew = Segment { sequence: syn.sequence.wrapping_add(1_000_000), ..syn.clone() };
        let mut expected = NOTHING;
        expected[family] = Counts { new: 1, retransmit: 1, ..Counts::default() };
        assert_eq!(counted.segments(&[syn, anew]).unwrap(), expected);
    }
}

#[test]
fn a_syn_on_an_established_flow_is_stray() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    for target in counted.pair.targets(PORT) {
        let mut connection = Connection::open(&counted.pair.client, target, SOON).unwrap();
        assert_eq!(connection.request().unwrap(), "server");
        let source = connection.stream().local_addr().unwrap();
        let mut expected = NOTHING;
        expected[usize::from(target.is_ipv6())] = Counts { stray: 1, ..Counts::default() };
        assert_eq!(counted.segments(&[counted.pair.syn(source, target)]).unwrap(), expected);
        assert_eq!(connection.request().unwrap(), "server", "the connection stays");
    }
}

#[test]
fn a_syn_from_the_port_of_a_connection_that_has_ended_is_new() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    for target in counted.pair.targets(PORT) {
        // The server closes first, and so it is its side that waits.
        let first = connect_from(&counted.pair.client, 41_000, target, SOON);
        assert_eq!(first.outcome, Outcome::Served { by: "server".to_owned() });
        let waits = || {
            let sockets = tcp_sockets(&counted.pair.pod).unwrap();
            sockets.iter().any(|socket| socket.state == SocketState::TimeWait && socket.remote.port() == 41_000)
        };
        await_condition("the end of the connection", SOON, waits).unwrap();
        let source = SocketAddr::new(client_address(target), 41_000);
        // Newer than all that came over the connection, so that the kernel takes it.
        let anew = Segment { sequence: 0xf000_0000, ..counted.pair.syn(source, target) };
        let mut expected = NOTHING;
        expected[usize::from(target.is_ipv6())] = Counts::new(1);
        assert_eq!(counted.segments(&[anew]).unwrap(), expected);
    }
}

#[test]
fn syns_that_are_answered_with_cookies_are_new() {
    let counted = Counted::start().unwrap();
    counted.pair.pod.set_sysctl("net.ipv4.tcp_max_syn_backlog", "64").unwrap();
    let _server = serve(&counted, ServerConfig { backlog: 64, ..ServerConfig::default() });
    let cookies = || Counters::of(&counted.pair.pod).unwrap().tcp_ext("SyncookiesSent");
    let flood: Vec<Segment> =
        (0..2500).map(|number| counted.syns(20_000 + number)[usize::from(number % 2)].clone()).collect();
    let counted_as = counted.segments(&flood).unwrap();
    assert!(cookies() >= 2000, "{} cookies", cookies());
    assert_eq!(counted_as, each(Counts::new(1250)));
}

#[test]
fn both_connects_of_tcp_fast_open_are_new() {
    let counted = Counted::start().unwrap();
    for host in [&counted.pair.client, &counted.pair.pod] {
        // For clients, for servers, and for every listener without its asking.
        host.set_sysctl("net.ipv4.tcp_fastopen", "1027").unwrap();
    }
    let _server = serve(&counted, ServerConfig::default());
    for target in counted.pair.targets(PORT) {
        let mut expected = NOTHING;
        expected[usize::from(target.is_ipv6())] = Counts::new(1);
        let with_data = || Counters::of(&counted.pair.pod).unwrap().tcp_ext("TCPFastOpenPassive");
        let before = with_data();
        assert_eq!(counted.of(|| fast_open(&counted.pair, target)).unwrap(), expected, "it asks for a cookie");
        assert_eq!(with_data(), before);
        assert_eq!(counted.of(|| fast_open(&counted.pair, target)).unwrap(), expected, "it brings data");
        assert_eq!(with_data(), before + 1, "no data came with the SYN");
    }
}

#[test]
fn a_fast_open_that_is_sent_again_is_a_retransmission() {
    let counted = Counted::start().unwrap();
    // Data in a SYN is taken without a cookie: such a connection has a socket before its handshake is complete.
    counted.pair.pod.set_sysctl("net.ipv4.tcp_fastopen", "1538").unwrap();
    // Else the client tells the pod that it knows no way to the stranger, which ends such a connection.
    counted.pair.client.ip("route add blackhole 2001:db8::/32\n").unwrap();
    let _server = serve(&counted, ServerConfig::default());
    for syn in counted.syns(40_000) {
        let family = usize::from(syn.source.is_ipv6());
        let syn = Segment { payload: b"data".to_vec(), ..syn };
        let mut expected = NOTHING;
        expected[family] = Counts { new: 1, retransmit: 1, ..Counts::default() };
        assert_eq!(counted.segments(&[syn.clone(), syn]).unwrap(), expected);
    }
    assert_eq!(Counters::of(&counted.pair.pod).unwrap().tcp_ext("TCPFastOpenPassive"), 2);
}

#[test]
fn an_mptcp_connection_is_new_and_its_further_subflow_a_join() {
    let counted = Counted::start().unwrap();
    let Pair { client, pod, .. } = &counted.pair;
    client.ip(&format!("address add 10.0.0.3/24 dev {INTERFACE}\n")).unwrap();
    let mptcp = |arguments: &str| -> Result<()> {
        let output = client.command("ip")?.arg("mptcp").args(arguments.split(' ')).output()?;
        ensure!(output.status.success(), "ip mptcp {arguments}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    mptcp("limits set subflow 2 add_addr_accepted 0").unwrap();
    mptcp(&format!("endpoint add 10.0.0.3 dev {INTERFACE} subflow")).unwrap();
    let listener = pod.run(|| listen(MPTCP)).unwrap();
    let capture = Capture::open(pod, INTERFACE).unwrap();

    let target = counted.pair.targets(PORT)[0];
    let mut ends = None;
    let first = counted.of(|| {
        let near = client.run(|| connect(MPTCP, target))?;
        ends = Some((near, listener.accept()?.0));
        Ok(())
    });
    assert_eq!(first.unwrap()[0].new, 1);
    let (mut near, mut far) = ends.unwrap();
    // A byte each way, with which both sides know that the other speaks MPTCP; the subflow follows by itself.
    near.write_all(b"a").unwrap();
    far.read_exact(&mut [0]).unwrap();
    far.write_all(b"b").unwrap();
    near.read_exact(&mut [0]).unwrap();
    let from = SocketAddr::from(([10, 0, 0, 3], 0));
    await_condition("the SYN of the subflow", SOON, || {
        let frame = capture.next_frame(Duration::from_millis(1)).ok().flatten()?;
        let segment = lastsyn_tests::raw::Observed::parse(&frame)?;
        (segment.flags & SYN != 0 && segment.source.ip() == from.ip()).then_some(())
    })
    .unwrap();
    assert_eq!(counted.so_far().unwrap(), [Counts { new: 1, join: 1, ..Counts::default() }, Counts::default()]);
}

#[test]
fn a_join_is_one_wherever_it_stands_among_the_options() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    let join = [30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    for (number, before) in
        [vec![], vec![2, 4, 5, 0xb4], vec![1; 28], vec![8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1]].into_iter().enumerate()
    {
        let syns = counted.syns(40_000 + u16::try_from(number).unwrap());
        let syns = syns.map(|syn| Segment { tcp_options: [&before[..], &join].concat(), ..syn });
        assert_eq!(
            counted.segments(&syns).unwrap(),
            each(Counts { join: 1, ..Counts::default() }),
            "behind {before:?}"
        );
    }
}

#[test]
fn a_join_to_a_closed_port_is_refused() {
    let counted = Counted::start().unwrap();
    let syns =
        counted.syns(40_000).map(|syn| Segment { tcp_options: vec![30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9], ..syn });
    assert_eq!(counted.segments(&syns).unwrap(), each(refused(1)));
}

#[test]
fn connects_inside_the_pod_are_not_counted() {
    let counted = Counted::start().unwrap();
    let _server = serve(&counted, ServerConfig::default());
    let loopback = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), SocketAddr::from((Ipv6Addr::LOCALHOST, PORT))];
    let inside = loopback.into_iter().chain(counted.pair.targets(PORT));
    let connect = || {
        for target in inside {
            counted.pair.pod.run(|| TcpStream::connect_timeout(&target, SOON))?;
        }
        Ok(())
    };
    assert_eq!(counted.of(connect).unwrap(), NOTHING);
}

#[test]
fn what_a_drain_refuses_is_in_its_verdict() {
    let config = AgentConfig::default().env("LASTSYN_DRAIN_QUIET_PERIOD", "1s");
    let counted = Counted::with(Pair::new().unwrap(), config).unwrap();
    let server = serve(&counted, ServerConfig::default());
    let call = counted.agent.drain().unwrap();
    await_condition("the drain", SOON, || counted.agent.status().is_ok_and(|status| status["state"] == "draining"))
        .unwrap();
    server.close().unwrap();
    for target in counted.pair.targets(PORT).into_iter().cycle().take(6) {
        assert_eq!(connect_once(&counted.pair.client, target, SOON).outcome, Outcome::Refused);
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "quiet", "{verdict}");
    for family in ["IPv4", "IPv6"] {
        assert_eq!(counts(&verdict, PORT, family), Some(refused(3)), "{verdict}");
    }
    assert!(verdict["listeners"][0]["closedAtMs"].is_u64(), "{verdict}");
    let metrics = counted.agent.metrics().unwrap();
    let sample = r#"lastsyn_attempts_total{port="80",family="IPv6",class="refused"} 3"#;
    assert!(metrics.contains(sample), "{metrics}");
}

fn serve(counted: &Counted, config: ServerConfig) -> Server {
    Server::start(&counted.pair.pod, config).unwrap()
}

/// One connect over each family, whatever becomes of it.
fn connects(counted: &Counted) -> Result<[Counts; 2]> {
    counted.of(|| {
        for target in counted.pair.targets(PORT) {
            connect_once(&counted.pair.client, target, SOON);
        }
        Ok(())
    })
}

fn each(counts: Counts) -> [Counts; 2] {
    [counts; 2]
}

fn refused(count: u64) -> Counts {
    Counts { refused: count, ..Counts::default() }
}

fn client_address(target: SocketAddr) -> std::net::IpAddr {
    if target.is_ipv4() { CLIENT_V4.into() } else { CLIENT_V6.into() }
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

/// Connects and sends in one step, as a client does that uses TCP Fast Open.
fn fast_open(pair: &Pair, target: SocketAddr) -> Result<()> {
    pair.client.run(|| {
        let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_read_timeout(Some(SOON))?;
        let request = b"GET / HTTP/1.0\r\n\r\n";
        let sent = socket.send_to_with_flags(request, &target.into(), libc::MSG_FASTOPEN)?;
        ensure!(sent == request.len(), "only {sent} bytes were sent");
        let mut answer = Vec::new();
        (&socket).read_to_end(&mut answer)?;
        ensure!(answer.ends_with(b"server"), "{}", String::from_utf8_lossy(&answer));
        Ok(())
    })
}

fn listen(protocol: Protocol) -> Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).context("no MPTCP (CONFIG_MPTCP)")?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)).into())?;
    socket.listen(16)?;
    Ok(socket.into())
}

fn connect(protocol: Protocol, target: SocketAddr) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    socket.connect_timeout(&target.into(), SOON)?;
    Ok(socket.into())
}
