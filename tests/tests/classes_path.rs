//! SYNs on unusual ways into the pod, and in the company of other programs: each is counted once, and none is missed
//! without the agent's saying so.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use anyhow::{Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Counted, End, Families, Host, Lab, Link, Outcome, Pair, Server, ServerConfig,
    agent::{Counts, counts},
    await_condition,
    bpf::{Does, Place, Program, interface_index},
    connect_once,
    counted::PORT,
    pair::{CLIENT_HARDWARE, CLIENT_V4, CLIENT_V6, INTERFACE, POD_HARDWARE, POD_V4, POD_V6},
    raw::{Segment, Sender},
    tcx::programs_on,
};

const SOON: Duration = Duration::from_secs(20);
const SERVED: &str = "server";

#[test]
fn a_syn_that_is_redirected_into_the_pod_from_the_hosts_side_is_counted_once() {
    let scene = Redirected::new().unwrap();
    let before = scene.counted().unwrap();
    for number in 0..10 {
        for syn in Redirected::syns(40_000 + number) {
            scene.sender.send(&syn).unwrap();
        }
    }
    let after = scene.counted().unwrap();
    assert_eq!([0, 1].map(|family| after[family].since(before[family])), [Counts::new(10); 2]);
}

#[test]
fn two_sensors_on_one_interface_count_the_same() {
    let counted = Counted::start().unwrap();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let config = AgentConfig { port: Some(19_481), ..AgentConfig::default() }
        .env("LASTSYN_SERVER_ADDRESS", "[::]:19481")
        .env("LASTSYN_SERVER_SOCKET", "")
        .env("LASTSYN_LISTENERS_WATCH", PORT.to_string());
    let second = Agent::start(&counted.pair.pod, config).unwrap();
    assert_eq!(programs_on(&counted.pair.pod, INTERFACE).unwrap().len(), 2);
    connect(&counted.pair, 50);
    let status = second.status_of_now().unwrap();
    for family in ["IPv4", "IPv6"] {
        assert_eq!(counts(&status, PORT, family), Some(Counts::new(50)), "{status}");
    }
    assert_eq!(counted.so_far().unwrap(), [Counts::new(50); 2]);
}

#[test]
fn a_program_behind_the_agents_changes_no_count_whatever_it_does() {
    let counted = Counted::start().unwrap();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let ends = Program::attach(&counted.pair.pod, INTERFACE, Place::Last, Does::EndsTheChain).unwrap();
    assert_eq!(programs_on(&counted.pair.pod, INTERFACE).unwrap().len(), 2);
    connect(&counted.pair, 20);
    assert_eq!(counted.so_far().unwrap(), [Counts::new(20); 2]);
    drop(ends);

    // What it drops has come nevertheless, and its client will try again.
    let _drops = Program::attach(&counted.pair.pod, INTERFACE, Place::Last, Does::Drops).unwrap();
    for port in 40_000..40_010 {
        counted.segments(&counted.syns(port)).unwrap();
    }
    assert_eq!(counted.so_far().unwrap(), [Counts::new(30); 2]);
}

#[test]
fn a_program_in_front_that_hides_syns_is_noticed_and_put_behind() {
    let counted = Counted::start().unwrap();
    let _server = Server::start(&counted.pair.pod, ServerConfig::default()).unwrap();
    let call = counted.agent.drain().unwrap();
    await_condition("the drain", SOON, || counted.agent.status().is_ok_and(|status| status["state"] == "draining"))
        .unwrap();
    let _hides = Program::attach(&counted.pair.pod, INTERFACE, Place::First, Does::EndsTheChain).unwrap();
    connect(&counted.pair, 5);
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["healthy"]), (&"unverified".into(), &false.into()), "{verdict}");
    let before = counted.so_far().unwrap();
    connect(&counted.pair, 20);
    let after = counted.so_far().unwrap();
    assert_eq!([0, 1].map(|family| after[family].since(before[family])), [Counts::new(20); 2]);
}

/// A pod behind a node whose program hands packets to the pod's interface past the node's own stack, as Cilium does.
struct Redirected {
    _lab: Lab,
    _hosts: [Host; 3],
    sender: Sender,
    agent: Agent,
    _server: Server,
    _program: Program,
}

impl Redirected {
    fn new() -> Result<Self> {
        const NODE_HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 9];
        let lab = Lab::new()?;
        let [client, node, pod] = ["client", "node", "pod"].map(|role| lab.host(role));
        let (client, node, pod) = (client?, node?, pod?);
        let v4 = |last| ([10, 0, 0, last].into(), 24);
        let v6 = |last| ([0xfd00, 0, 0, 0, 0, 0, 0, last].into(), 64);
        let end =
            |host, interface, last: u8, hardware| End { host, interface, v4: v4(last), v6: v6(last.into()), hardware };
        let link = |ends| Link { ends, families: Families::Dual, mtu: 1500 }.make();
        link([end(&client, INTERFACE, 1, CLIENT_HARDWARE), end(&node, "eth0", 9, NODE_HARDWARE)])?;
        link([end(&node, "pod0", 10, [0x02, 0, 0, 0, 0, 10]), end(&pod, INTERFACE, 2, POD_HARDWARE)])?;
        let to_pod = Does::HandsToPeerOf(interface_index(&node, "pod0")?);
        let program = Program::attach(&node, "eth0", Place::First, to_pod)?;
        let server = Server::start(&pod, ServerConfig::default())?;
        let agent = Agent::start(&pod, AgentConfig::default().env("LASTSYN_LISTENERS_WATCH", PORT.to_string()))?;
        let status = agent.status_of_now()?;
        ensure!(status["sensor"]["healthy"] == true, "{status}");
        let sender = Sender::open(&client, INTERFACE)?;
        let hosts = [client, node, pod];
        Ok(Self { _lab: lab, _hosts: hosts, sender, agent, _server: server, _program: program })
    }

    /// SYNs over both families to the pod's addresses and the node's hardware, from a port of the client.
    fn syns(port: u16) -> [Segment; 2] {
        let ends: [(IpAddr, IpAddr); 2] = [(CLIENT_V4.into(), POD_V4.into()), (CLIENT_V6.into(), POD_V6.into())];
        ends.map(|(source, destination)| {
            let (source, destination) = (SocketAddr::new(source, port), SocketAddr::new(destination, PORT));
            Segment::syn(source, destination).between(CLIENT_HARDWARE, [0x02, 0, 0, 0, 0, 9])
        })
    }

    fn counted(&self) -> Result<[Counts; 2]> {
        let status = self.agent.status_of_now()?;
        Ok(["IPv4", "IPv6"].map(|family| counts(&status, PORT, family).unwrap_or_default()))
    }
}

/// Connects so many times over each family, and is served.
fn connect(pair: &Pair, times: usize) {
    for target in pair.targets(PORT).into_iter().cycle().take(2 * times) {
        let served = connect_once(&pair.client, target, SOON);
        assert_eq!(served.outcome, Outcome::Served { by: SERVED.to_owned() });
    }
}
