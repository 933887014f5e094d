//! The sensor `cgroup`: on a network that the pod shares with others it counts the pod's SYNs alone, and says what it cannot
//! see. One test for each row of the table of stimuli whose class differs from that of `tcx` (docs/sensors.md).

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use anyhow::{Result, ensure};
use lastsyn_tests::{
    Agent, AgentConfig, Connection, Counted, HaProxy, HaProxyConfig, Pair, PodGroup,
    agent::Counts,
    await_condition, connect_once,
    counted::PORT,
    monotonic_now,
    raw::{Checksum, Segment},
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_secs(2);
const NOTHING: Counts =
    Counts { new: 0, retransmit: 0, refused: 0, join: 0, opaque: 0, stray: 0, ignored: 0, probe: 0 };
/// The port of another pod on the same network.
const FOREIGN: u16 = 8080;

/// Two pods on one network, which has an agent in one of them.
struct Shared {
    counted: Counted,
    server: HaProxy,
    _foreign: HaProxy,
    /// Last: their processes have ended by then.
    groups: [PodGroup; 2],
}

impl Shared {
    fn start(config: AgentConfig) -> Self {
        let pair = Pair::new().unwrap();
        let groups = [PodGroup::new(&pair.lab).unwrap(), PodGroup::new(&pair.lab).unwrap()];
        let serve = |name: &str, port, group: &PodGroup| {
            let through = group.container("server").unwrap();
            let config =
                HaProxyConfig { name: name.to_owned(), ports: vec![port], through, ..HaProxyConfig::default() };
            HaProxy::start_as(&pair.pod, &config).unwrap()
        };
        let (server, foreign) = (serve("own", PORT, &groups[0]), serve("foreign", FOREIGN, &groups[1]));
        let two = ["setpriv", "--bounding-set=-all,+bpf,+net_admin", "--inh-caps=-all"];
        let through = groups[0].container("agent").unwrap().into_iter().chain(two.map(str::to_owned));
        let counted = Counted::with(pair, config.through(through)).unwrap();
        Self { counted, server, _foreign: foreign, groups }
    }

    fn v4(&self, shape: impl Fn(Segment) -> Segment) -> Counts {
        let [syn, _] = self.counted.syns(40_000);
        self.counted.segments(&[shape(syn)]).unwrap()[0]
    }
}

fn config() -> AgentConfig {
    AgentConfig::default()
        .env("LASTSYN_SENSOR_NETWORK", "node")
        .env("LASTSYN_DRAIN_QUIET_PERIOD", format!("{}ms", QUIET.as_millis()))
}

fn connect(pair: &Pair, port: u16, times: usize) {
    for target in pair.targets(port).into_iter().cycle().take(2 * times) {
        Connection::open(&pair.client, target, SOON).unwrap().request().unwrap();
    }
}

fn await_drain(agent: &Agent) {
    await_condition("the drain", SOON, || agent.status().is_ok_and(|status| status["state"] == "draining")).unwrap();
}

/// The programs on a control group, as `bpftool` tells them.
fn programs_on(group: &PodGroup) -> Result<Vec<u64>> {
    let output = Command::new("bpftool").args(["--json", "cgroup", "list"]).arg(group.path()).output()?;
    ensure!(output.status.success(), "bpftool: {}", String::from_utf8_lossy(&output.stderr));
    if output.stdout.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    Ok(list.iter().filter_map(|program| program["id"].as_u64()).collect())
}

#[test]
fn the_pods_connects_are_counted_and_those_of_another_pod_are_not() {
    let shared = Shared::start(config());
    let status = shared.counted.agent.status_of_now().unwrap();
    assert_eq!((&status["sensor"]["strategy"], &status["sensor"]["healthy"]), (&"cgroup".into(), &true.into()));
    connect(&shared.counted.pair, PORT, 20);
    connect(&shared.counted.pair, FOREIGN, 30);
    assert_eq!(shared.counted.so_far().unwrap(), [Counts::new(20); 2]);
    let verdict = shared.counted.agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["strategy"]), (&"quiet".into(), &"cgroup".into()), "{verdict}");
    assert_eq!(verdict["sensor"]["witness"], false, "the namespace's counters are the node's: {verdict}");
    let family = &verdict["listeners"][0]["families"][0];
    assert_eq!((&family["refused"], &family["stray"]), (&Value::Null, &Value::Null), "{verdict}");
}

#[test]
fn a_watched_port_of_another_pod_is_not_counted() {
    let pair = Pair::new().unwrap();
    let groups = [PodGroup::new(&pair.lab).unwrap(), PodGroup::new(&pair.lab).unwrap()];
    let through = groups[1].container("server").unwrap();
    let config_of = HaProxyConfig { ports: vec![PORT], through, ..HaProxyConfig::default() };
    let foreign = HaProxy::start_as(&pair.pod, &config_of).unwrap();
    let through = groups[0].container("agent").unwrap();
    let counted = Counted::with(pair, config().through(through)).unwrap();
    connect(&counted.pair, PORT, 20);
    assert_eq!(counted.so_far().unwrap(), [NOTHING; 2]);
    drop((counted, foreign)); // before their groups
}

#[test]
fn a_connect_in_the_drain_holds_it() {
    let shared = Shared::start(config());
    let call = shared.counted.agent.drain().unwrap();
    await_drain(&shared.counted.agent);
    connect(&shared.counted.pair, PORT, 1);
    let connected_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(connected_at));
    assert!(held >= QUIET, "the drain ended {held:?} after a connect: {}", answer.verdict);
    assert_eq!(answer.verdict["reason"], "quiet", "{}", answer.verdict);
}

#[test]
fn a_closed_port_is_not_observed() {
    let shared = Shared::start(config());
    let refused = |shared: &Shared| {
        shared.counted.of(|| {
            for target in shared.counted.pair.targets(PORT) {
                connect_once(&shared.counted.pair.client, target, SOON);
            }
            Ok(())
        })
    };
    let call = shared.counted.agent.drain().unwrap();
    await_drain(&shared.counted.agent);
    shared.server.soft_stop().unwrap();
    shared.server.wait(SOON).unwrap();
    assert_eq!(refused(&shared).unwrap(), [NOTHING; 2]);
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
    let mut unseen = verdict["notObserved"].as_array().into_iter().flatten();
    assert!(unseen.any(|entry| entry["what"] == "listener" && entry["name"] == "80"), "{verdict}");
    // Nor does it claim to have watched for late ones.
    let status = shared.counted.agent.status_of_now().unwrap();
    assert_eq!(status["verdict"]["late"]["observedForMs"], 0, "{status}");
}

#[test]
fn the_same_syn_three_times_is_one_new_and_two_retransmissions() {
    let shared = Shared::start(config());
    for syn in shared.counted.syns(40_000) {
        let family = usize::from(syn.source.is_ipv6());
        let counts = shared.counted.segments(&[syn.clone(), syn.clone(), syn]).unwrap();
        assert_eq!(counts[family], Counts { new: 1, retransmit: 2, ..NOTHING });
    }
}

#[test]
fn a_syn_on_an_established_flow_is_nothing() {
    let shared = Shared::start(config());
    for target in shared.counted.pair.targets(PORT) {
        let mut connection = Connection::open(&shared.counted.pair.client, target, SOON).unwrap();
        assert_eq!(connection.request().unwrap(), "own");
        let source = connection.stream().local_addr().unwrap();
        assert_eq!(shared.counted.segments(&[shared.counted.pair.syn(source, target)]).unwrap(), [NOTHING; 2]);
    }
}

#[test]
fn what_the_kernel_drops_before_the_socket_is_nothing() {
    let shared = Shared::start(config());
    assert_eq!(shared.v4(|syn| Segment { checksum: Checksum::Wrong, ..syn }), NOTHING, "a bad checksum");
    let foreign = |syn: Segment| {
        let mut destination = syn.destination;
        destination.set_ip([10, 0, 0, 99].into());
        Segment { destination, ..syn }
    };
    assert_eq!(shared.v4(foreign), NOTHING, "another's address");
    let routed = |syn| Segment { ip_options: vec![131, 7, 4, 10, 0, 0, 1, 0], ..syn };
    assert_eq!(shared.v4(routed), NOTHING, "a source route");
    assert_eq!(shared.v4(|syn| Segment { ip_options: vec![1; 4], ..syn }), Counts::new(1), "options that do nothing");
}

#[test]
fn a_syn_in_tiny_fragments_is_new() {
    // Here it has been put together again.
    let shared = Shared::start(config());
    let [syn, _] = shared.counted.syns(40_000);
    let frames = syn.in_fragments(8);
    assert_eq!(frames.len(), 2);
    assert_eq!(shared.counted.frames(&frames).unwrap(), [Counts::new(1), NOTHING]);
}

#[test]
fn joins_and_ignored_sources_are_told_apart() {
    let shared = Shared::start(config().env("LASTSYN_LISTENERS_IGNORE_SOURCES", "198.51.100.0/24"));
    let join = vec![30, 12, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let syns = shared.counted.syns(40_000).map(|syn| Segment { tcp_options: join.clone(), ..syn });
    let expected = [Counts { ignored: 1, ..NOTHING }, Counts { join: 1, ..NOTHING }];
    assert_eq!(shared.counted.segments(&syns).unwrap(), expected);
}

#[test]
fn a_port_that_is_redirected_is_counted_as_the_one_that_it_leads_to() {
    let shared = Shared::start(config());
    let pair = &shared.counted.pair;
    pair.pod
        .nft(&format!(
            "table inet ports {{\n chain to_own {{\n type nat hook prerouting priority dstnat;\n tcp dport 8000 redirect to :{PORT}\n }}\n}}\n"
        ))
        .unwrap();
    connect(pair, 8000, 5);
    assert_eq!(shared.counted.so_far().unwrap(), [Counts::new(5); 2]);
}

#[test]
fn connects_of_the_node_by_its_address_are_new_and_over_the_loopback_nothing() {
    let shared = Shared::start(config());
    let pair = &shared.counted.pair;
    let connect = |targets: Vec<SocketAddr>| {
        shared.counted.of(|| {
            for target in &targets {
                pair.pod.run(|| TcpStream::connect_timeout(target, SOON))?;
            }
            Ok(())
        })
    };
    assert_eq!(connect(pair.targets(PORT)).unwrap(), [Counts::new(1); 2]);
    let loopback = vec![(Ipv4Addr::LOCALHOST, PORT).into(), SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, PORT))];
    assert_eq!(connect(loopback).unwrap(), [NOTHING; 2]);
}

#[test]
fn a_killed_agent_leaves_no_program_and_one_that_is_taken_away_is_put_back() {
    let shared = Shared::start(config());
    let group = &shared.groups[0];
    let own = programs_on(group).unwrap();
    assert_eq!(own.len(), 1);
    let call = shared.counted.agent.drain().unwrap();
    await_drain(&shared.counted.agent);
    lastsyn_tests::tcx::detach(own[0].try_into().unwrap()).unwrap();
    let detached_at = monotonic_now();
    let answer = call.wait(SOON).unwrap();
    let held = Duration::from_nanos(answer.answered_at.saturating_sub(detached_at));
    assert!(held >= QUIET, "the drain ended {held:?} after the program was taken away: {}", answer.verdict);
    assert_eq!(answer.verdict["reason"], "unverified", "{}", answer.verdict);
    assert_eq!(programs_on(group).unwrap(), own);
    shared.counted.agent.kill().unwrap();
    await_condition("no program on the group", SOON, || programs_on(group).unwrap().is_empty()).unwrap();
}

#[test]
fn without_a_pods_group_the_sensor_is_unscoped() {
    let pair = Pair::new().unwrap();
    let counted = Counted::with(pair, config()).unwrap();
    let _server = HaProxy::start(&counted.pair.pod, "own", &[PORT]).unwrap();
    let status = counted.agent.status_of_now().unwrap();
    assert_eq!(
        (&status["sensor"]["strategy"], &status["sensor"]["scoped"]),
        (&"tcx".into(), &false.into()),
        "{status}"
    );
    assert!(status["sensor"]["passedOver"][0]["why"].to_string().contains("in none of a pod"), "{status}");
    connect(&counted.pair, PORT, 5);
    assert_eq!(counted.so_far().unwrap(), [Counts::new(5); 2]);
    let verdict = counted.agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!((&verdict["reason"], &verdict["sensor"]["witness"]), (&"unverified".into(), &false.into()), "{verdict}");
    let mut unseen = verdict["notObserved"].as_array().into_iter().flatten();
    assert!(unseen.any(|entry| entry["what"] == "scope" && entry["why"].to_string().contains("unscoped")), "{verdict}");
    let table = lastsyn_tests::agent::subcommand(&counted.pair.pod, "check", ["--sensor.network", "node"]).unwrap();
    table.wait(SOON).unwrap();
    assert!(table.report().contains("the node's listeners are among them"), "{}", table.report());
    assert!(table.report().contains("does not tell the pod's SYNs from others of the node"), "{}", table.report());
}
