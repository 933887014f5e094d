//! The sensor `packet`: one test for each row of the table of stimuli whose class differs from that of `tcx`, and what it
//! does with more SYNs than it has room for. (docs/sensors.md has the table.)

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use anyhow::Result;
use lastsyn_tests::{
    Agent, AgentConfig, Bind, Connection, Counted, Pair, Server, ServerConfig, Signal,
    agent::{Counts, counts},
    await_condition,
    bpf::{Does, Place, Program},
    connect_once,
    counted::PORT,
    counters::{Counters, interface_counters},
    monotonic_now,
    pair::INTERFACE,
    raw::{Checksum, Segment, Sender},
};

const SOON: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_secs(2);
const NOTHING: Counts =
    Counts { new: 0, retransmit: 0, refused: 0, join: 0, opaque: 0, stray: 0, ignored: 0, probe: 0 };
/// `MP_JOIN`.
const JOIN: [u8; 12] = [30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];

fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_SENSOR_STRATEGY", "packet")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
        .through(["setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all"])
}

fn counted() -> Counted {
    Counted::with(Pair::new().unwrap(), config()).unwrap()
}

fn serve(counted: &Counted, config: ServerConfig) -> Server {
    Server::start(&counted.pair.pod, config).unwrap()
}

fn connects(counted: &Counted) -> Result<[Counts; 2]> {
    counted.of(|| {
        for target in counted.pair.targets(PORT) {
            connect_once(&counted.pair.client, target, SOON);
        }
        Ok(())
    })
}

fn await_drain(agent: &Agent) {
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
}

/// Sends SYNs from so many ports to a port of the pod, as fast as it can.
fn flood(pair: &Pair, to: u16, syns: u16) {
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();
    let target = pair.targets(to)[0];
    for port in 1..=syns {
        sender.send(&pair.syn(SocketAddr::from(([198, 51, 100, 7], port)), target)).unwrap();
    }
}

#[test]
fn a_connect_is_new_and_to_a_closed_port_refused() {
    let counted = counted();
    assert_eq!(connects(&counted).unwrap(), [Counts { refused: 1, ..NOTHING }; 2]);
    let _server = serve(&counted, ServerConfig::default());
    assert_eq!(connects(&counted).unwrap(), [Counts::new(1); 2]);
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(status["listeners"][0]["families"][0]["stray"], serde_json::Value::Null, "it cannot be told: {status}");
}

#[test]
fn what_a_listener_of_another_family_or_address_does_not_take_is_new() {
    // Whether anything listens on the port is all that is asked.
    let counted = counted();
    let only_v6 = serve(&counted, ServerConfig { bind: Bind::V6, ..ServerConfig::default() });
    assert_eq!(connects(&counted).unwrap(), [Counts::new(1); 2]);
    drop(only_v6);
    counted.pair.pod.ip(&format!("address add 10.0.0.77/32 dev {INTERFACE}\n")).unwrap();
    let _elsewhere = counted.pair.pod.run(|| TcpListener::bind(("10.0.0.77", PORT))).unwrap();
    assert_eq!(connects(&counted).unwrap(), [Counts::new(1); 2]);
}

#[test]
fn a_syn_that_is_sent_again_is_a_retransmission_and_one_that_begins_anew_is_new() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    for syn in counted.syns(40_000) {
        let family = usize::from(syn.source.is_ipv6());
        let anew = Segment { sequence: syn.sequence.wrapping_add(1_000_000), ..syn.clone() };
        let counts = counted.segments(&[syn.clone(), syn.clone(), syn, anew]).unwrap();
        assert_eq!(counts[family], Counts { new: 2, retransmit: 2, ..NOTHING });
    }
}

#[test]
fn what_overflows_is_new_and_sent_again_a_retransmission() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig { accept: false, backlog: 1, ..ServerConfig::default() });
    let overflows = || Counters::of(&counted.pair.pod).unwrap().tcp_ext("ListenOverflows");
    let target = counted.pair.targets(PORT)[0];
    let _waiting: Vec<_> = (0..2).map(|_| Connection::open(&counted.pair.client, target, SOON).unwrap()).collect();
    let before = overflows();
    let [syn, _] = counted.syns(40_000);
    assert_eq!(counted.segments(&[syn.clone(), syn]).unwrap()[0], Counts { new: 1, retransmit: 1, ..NOTHING });
    assert_eq!(overflows() - before, 2);
}

#[test]
fn a_syn_on_an_established_flow_is_new_and_holds() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    for target in counted.pair.targets(PORT) {
        let mut connection = Connection::open(&counted.pair.client, target, SOON).unwrap();
        assert_eq!(connection.request().unwrap(), "server");
        let source = connection.stream().local_addr().unwrap();
        let counts = counted.segments(&[counted.pair.syn(source, target)]).unwrap();
        assert_eq!(counts[usize::from(target.is_ipv6())], Counts::new(1));
    }
}

#[test]
fn a_bad_checksum_is_new_and_sent_again_a_retransmission() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    let syns = counted.syns(40_000).map(|syn| Segment { checksum: Checksum::Wrong, ..syn });
    assert_eq!(counted.segments(&syns).unwrap(), [Counts::new(1); 2]);
    assert_eq!(counted.segments(&syns).unwrap(), [Counts { retransmit: 1, ..NOTHING }; 2]);
}

#[test]
fn joins_and_ignored_sources_are_told_apart() {
    let config = config().env("LASTSYN_LISTENERS_IGNORE_SOURCES", "198.51.100.0/24");
    let counted = Counted::with(Pair::new().unwrap(), config).unwrap();
    let _server = serve(&counted, ServerConfig::default());
    let syns = counted.syns(40_000).map(|syn| Segment { tcp_options: JOIN.to_vec(), ..syn });
    let expected = [Counts { ignored: 1, ..NOTHING }, Counts { join: 1, ..NOTHING }];
    assert_eq!(counted.segments(&syns).unwrap(), expected);
}

#[test]
fn connects_inside_the_pod_are_not_counted() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    let loopback = [SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)), SocketAddr::from((Ipv6Addr::LOCALHOST, PORT))];
    let inside: Vec<_> = loopback.into_iter().chain(counted.pair.targets(PORT)).collect();
    let connect = || {
        for target in inside.iter().cycle().take(200) {
            counted.pair.pod.run(|| TcpStream::connect_timeout(target, SOON))?;
        }
        Ok(())
    };
    // In a drain, so that the witness looks on.
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent);
    assert_eq!(counted.of(connect).unwrap(), [NOTHING; 2]);
    assert!(call.answered().unwrap().is_none(), "the drain did not last as long as the connects");
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"quiet".into(), &true.into()), "{verdict}");
    assert_eq!(verdict["sensor"]["witness"], true, "{verdict}");
}

#[test]
fn what_there_is_no_room_for_is_counted_for_every_listener() {
    const SYNS: u16 = 60_000;
    let counted = counted();
    counted.agent.process().signal(Signal::STOP).unwrap();
    let before = interface_counters(&counted.pair.client, INTERFACE).unwrap().unsent;
    flood(&counted.pair, PORT, SYNS);
    let unsent = interface_counters(&counted.pair.client, INTERFACE).unwrap().unsent - before;
    counted.agent.process().signal(Signal::CONT).unwrap();
    let [v4, v6] = counted.so_far().unwrap();
    assert!(v4.refused > 0 && v4.opaque > 10_000, "the scene shows too little: {v4:?}");
    assert_eq!(v4.sum(), u64::from(SYNS) - unsent, "{v4:?}");
    // What it was is not known, and so neither is its family.
    assert_eq!(v6, Counts { opaque: v4.opaque, ..NOTHING });
}

#[test]
fn what_there_is_no_room_for_holds_the_drain() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent);
    counted.agent.process().signal(Signal::STOP).unwrap();
    // To a port that nobody watches: but who knows, when there was no room?
    flood(&counted.pair, 9000, 60_000);
    let flooded_at = monotonic_now();
    counted.agent.process().signal(Signal::CONT).unwrap();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(flooded_at));
    assert!(held >= QUIET, "the drain ended {held:?} after SYNs for which there was no room: {}", answer.verdict);
    assert!(counts(&answer.verdict, PORT, "IPv6").unwrap().opaque > 0, "{}", answer.verdict);
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
}

#[test]
fn an_interface_that_appears_has_no_gap() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    let call = counted.agent.drain().unwrap();
    await_drain(&counted.agent);
    let pair = &counted.pair;
    counted.agent.process().signal(Signal::STOP).unwrap(); // it notices nothing
    pair.pod.ip(&format!("link add new0 type veth peer name new0p netns {}\n", pair.client.name())).unwrap();
    pair.client.ip("link set new0p up\n").unwrap();
    pair.pod.ip("link set new0 up\n").unwrap();
    let hardware = pair.pod.hardware_address("new0").unwrap();
    let sender = Sender::open(&pair.client, "new0p").unwrap();
    for syn in counted.syns(40_000) {
        sender.send(&syn.between([2, 0, 0, 0, 7, 7], hardware)).unwrap();
    }
    let sent_at = monotonic_now();
    counted.agent.process().signal(Signal::CONT).unwrap();
    let answer = call.wait(SOON).unwrap();
    assert!(Duration::from_nanos(answer.answered_at.saturating_sub(sent_at)) >= QUIET, "{}", answer.verdict);
    let verdict = &answer.verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["blindMs"]), (&"quiet".into(), &0.into()), "{verdict}");
    for family in ["IPv4", "IPv6"] {
        assert_eq!(counts(verdict, PORT, family), Some(Counts::new(1)), "{verdict}");
    }
}

#[test]
fn it_sees_what_a_program_drops_and_counts_beside_another_sensor() {
    let counted = counted();
    let _server = serve(&counted, ServerConfig::default());
    let beside = AgentConfig { port: Some(19_481), ..AgentConfig::default() }
        .env("LASTSYN_SERVER_ADDRESS", "[::]:19481")
        .env("LASTSYN_SERVER_SOCKET", "")
        .env("LASTSYN_LISTENERS_WATCH", PORT.to_string());
    let beside = Agent::start(&counted.pair.pod, beside).unwrap();
    for target in counted.pair.targets(PORT).into_iter().cycle().take(40) {
        assert_eq!(Connection::open(&counted.pair.client, target, SOON).unwrap().request().unwrap(), "server");
    }
    let status = beside.status_of_now().unwrap();
    assert_eq!(status["sensor"]["strategy"], "tcx", "{status}");
    assert_eq!(["IPv4", "IPv6"].map(|family| counts(&status, PORT, family).unwrap()), [Counts::new(20); 2]);
    assert_eq!(counted.so_far().unwrap(), [Counts::new(20); 2]);

    let _drops = Program::attach(&counted.pair.pod, INTERFACE, Place::First, Does::Drops).unwrap();
    assert_eq!(counted.segments(&counted.syns(40_000)).unwrap(), [Counts::new(1); 2]);
}
