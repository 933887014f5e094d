//! The lab itself: what its scenes, servers and clients show must be so, and nothing must be left of them.

use std::{
    collections::BTreeSet,
    env, fs,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use lastsyn_tests::{
    Bind, Connection, Families, HaProxy, Host, Outcome, PacedClient, Pair, Pod, Process, Server, ServerConfig, Signal,
    Summary, World, WorldConfig, await_condition, connect_from, connect_once,
    counters::{Counters, interface_counters},
    monotonic_now,
    pair::INTERFACE,
    process::Stream,
    raw::{ACK, Capture, Checksum, ExtensionHeader, SYN, Segment, Sender},
    sockets::{self, SocketState},
};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn two_labs_stand_side_by_side() {
    let (one, two) = (World::new().unwrap(), World::new().unwrap());
    let _one = HaProxy::start(&one.pod_a, "one", &[80]).unwrap();
    let _two = HaProxy::start(&two.pod_a, "two", &[80]).unwrap();

    for (world, name) in [(&one, "one"), (&two, "two")] {
        for target in world.targets(80) {
            assert_eq!(connect_once(&world.client, target, SOON).outcome, served_by(name), "{target}");
        }
    }
}

#[test]
fn a_panic_leaves_nothing() {
    let mut traces = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let world = World::new().unwrap();
        let haproxy = HaProxy::start(&world.pod_a, "a", &[80]).unwrap();
        let stopped = Process::start("sleep", world.pod_b.command("sleep").unwrap().arg("600")).unwrap();
        stopped.signal(Signal::STOP).unwrap();
        let _client = PacedClient::start(&world.client, world.targets(80), 50).unwrap();
        let _server = Server::start(&world.pod_b, ServerConfig::default()).unwrap();
        traces = Some(
            [&world.client, &world.node, &world.pod_a, &world.pod_b]
                .map(|host| host.path().to_owned())
                .into_iter()
                .chain([world.lab.directory().to_owned()])
                .chain([&haproxy.process().pid(), &stopped.pid()].map(|pid| PathBuf::from(format!("/proc/{pid}"))))
                .collect::<Vec<_>>(),
        );
        for trace in traces.iter().flatten() {
            assert!(trace.exists(), "{}", trace.display());
        }
        world.client.run(|| panic!("as a failed test does"));
    }));

    assert!(panicked.is_err());
    for trace in traces.expect("the world stood before the panic") {
        assert!(!trace.exists(), "{} is left", trace.display());
    }
}

/// Set for [`a_lab_to_be_killed`].
const TO_BE_KILLED: &str = "LAB_TO_BE_KILLED";

#[test]
fn what_a_killed_lab_left_is_swept() {
    let own_again = |name| {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", name, "--include-ignored", "--nocapture"]);
        command
    };
    let killed = Process::start("a lab", own_again("a_lab_to_be_killed").env(TO_BE_KILLED, "yes")).unwrap();
    let line = killed.wait_for_line("traces: ", SOON).unwrap().text;
    let traces: Vec<&Path> = line.trim_start_matches("traces: ").split(' ').map(Path::new).collect();
    assert_eq!(traces.len(), 3, "{line}");
    killed.kill().unwrap();
    for trace in &traces {
        assert!(trace.exists(), "{} should have been left", trace.display());
    }

    // The first lab of the next process sweeps.
    let next = Process::start("the next lab", &mut own_again("two_labs_stand_side_by_side")).unwrap();
    next.wait_for_success(3 * SOON).unwrap();
    for trace in &traces {
        assert!(!trace.exists(), "{} is left", trace.display());
    }
}

#[test]
#[ignore = "a part of `what_a_killed_lab_left_is_swept`, in a process of its own"]
fn a_lab_to_be_killed() {
    if env::var_os(TO_BE_KILLED).is_none() {
        return;
    }
    let pair = Pair::new().unwrap();
    let haproxy = HaProxy::start(&pair.pod, "orphan", &[80]).unwrap();
    println!(
        "traces: {} {} /proc/{}/ns/net", // gone with the process's end, before it is reaped
        pair.pod.path().display(),
        pair.lab.directory().display(),
        haproxy.process().pid()
    );
    haproxy.wait(Duration::from_mins(1)).unwrap_err();
}

#[test]
fn a_host_is_removed_with_its_processes() {
    let world = World::new().unwrap();
    let mut command = world.pod_b.command("sleep").unwrap();
    let mut orphan = command.arg("600").spawn().unwrap();
    await_condition("the process in its host", SOON, || in_namespace_of(orphan.id(), &world.pod_b)).unwrap();

    drop(world);
    assert!(!orphan.wait().unwrap().success());
}

#[test]
fn forwarding_moves_new_connections_and_no_other() {
    let world = World::new().unwrap();
    let _a = HaProxy::start(&world.pod_a, "a", &[80]).unwrap();
    let _b = HaProxy::start(&world.pod_b, "b", &[80]).unwrap();
    let mut tracked: Vec<Connection> =
        world.targets(80).into_iter().map(|target| Connection::open(&world.client, target, SOON).unwrap()).collect();
    for connection in &mut tracked {
        assert_eq!(connection.request().unwrap(), "a");
    }

    let client = PacedClient::start(&world.client, world.targets(80), 100).unwrap();
    await_condition("100 answers", SOON, || client.so_far().served_in_all() >= 100).unwrap();
    assert_eq!(client.so_far().served_by("b"), 0);
    world.route_to(Pod::B).unwrap();
    await_condition("100 answers of b", SOON, || client.so_far().served_by("b") >= 100).unwrap();
    let attempts = client.stop().unwrap();

    let summary = Summary::of(&attempts);
    assert_eq!(summary.lost(), 0, "{summary}");
    assert_eq!(summary.outstanding, 0);
    let moved = attempts.iter().position(|attempt| attempt.outcome == served_by("b")).unwrap();
    let (before, after) = attempts.split_at(moved);
    for (attempts, name) in [(before, "a"), (after, "b")] {
        // One connection may have been on its way to the old pod when the next was sent to the new one.
        let other = attempts.iter().filter(|attempt| attempt.outcome != served_by(name)).count();
        assert!(other <= 1, "{other} of {} not by {name}", attempts.len());
        let v6 = attempts.iter().filter(|attempt| attempt.target.is_ipv6()).count();
        assert!(attempts.len().abs_diff(2 * v6) <= 1, "{v6} of {} over IPv6", attempts.len());
    }
    for connection in &mut tracked {
        assert_eq!(connection.request().unwrap(), "a");
    }
}

#[test]
fn the_client_keeps_its_pace_and_waits_for_nobody() {
    let pair = Pair::new().unwrap();
    // Nobody accepts: connections are established by the kernel until the backlog is full, and none is answered.
    let config = ServerConfig { accept: false, backlog: 1000, ..ServerConfig::default() };
    let server = Server::start(&pair.pod, config).unwrap();
    let client = PacedClient::start(&pair.client, pair.targets(80), 100).unwrap();
    await_condition("150 connections", SOON, || client.so_far().tried >= 150).unwrap();
    assert_eq!(client.so_far().outstanding, client.so_far().tried);

    client.set_pace(0);
    let paused = client.so_far().tried;
    server.accept().unwrap();
    await_condition("all answers", SOON, || client.so_far().outstanding == 0).unwrap();
    assert!(client.so_far().tried <= paused + 1);

    let attempts = client.stop().unwrap();
    assert!(attempts.iter().all(|attempt| attempt.outcome == served_by("server")), "{}", Summary::of(&attempts));
    let at = |index: usize| attempts[index].offset;
    let pace = 149.0 / (at(149).as_secs_f64() - at(0).as_secs_f64());
    assert!((90.0..110.0).contains(&pace), "{pace:.1} per second");
}

#[test]
fn a_loss_is_seen() {
    let world = World::new().unwrap();
    let a = HaProxy::start(&world.pod_a, "a", &[80]).unwrap();
    let client = PacedClient::start(&world.client, world.targets(80), 100).unwrap();
    await_condition("some answers", SOON, || client.so_far().served_by("a") >= 20).unwrap();
    a.soft_stop().unwrap();
    await_condition("some refusals", SOON, || client.so_far().refused >= 20).unwrap();
    assert!(a.wait(SOON).unwrap().success());

    let attempts = client.stop().unwrap();
    for v6 in [false, true] {
        let refused = attempts
            .iter()
            .filter(|attempt| attempt.target.is_ipv6() == v6 && attempt.outcome == Outcome::Refused)
            .count();
        assert!(refused >= 5, "{refused} refused, IPv6: {v6}");
    }
    assert!(Summary::of(&attempts).lost() >= 20);
}

#[test]
fn a_short_backlog_overflows() {
    let pair = Pair::new().unwrap();
    let config = ServerConfig { accept: false, backlog: 1, ..ServerConfig::default() };
    let server = Server::start(&pair.pod, config).unwrap();
    let target = pair.targets(80)[0];
    let before = Counters::of(&pair.pod).unwrap();

    let client = PacedClient::start(&pair.client, vec![target], 1000).unwrap();
    await_condition("8 connections", SOON, || client.so_far().tried >= 8).unwrap();
    client.set_pace(0);
    await_condition("overflows", SOON, || {
        Counters::of(&pair.pod).unwrap().tcp_ext("ListenOverflows") >= before.tcp_ext("ListenOverflows") + 6
    })
    .unwrap();
    let waiting = sockets::listeners(&pair.pod, 80).unwrap().next().unwrap().waiting;
    assert_eq!(waiting, 2); // the kernel lets one more in than it was told

    // What waits in the backlog of a closed listener is reset.
    server.close().unwrap();
    await_condition("two resets", SOON, || client.so_far().reset == 2).unwrap();
}

#[test]
fn a_forged_syn_is_answered() {
    let pair = Pair::new().unwrap();
    let _server = Server::start(&pair.pod, ServerConfig::default()).unwrap();
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();
    let capture = Capture::open(&pair.client, INTERFACE).unwrap();
    let sources = ["198.51.100.7:40000", "[2001:db8::7]:40000"].map(|source| source.parse::<SocketAddr>().unwrap());
    let answered = |syn: &Segment| {
        sender.send(syn).unwrap();
        let answer = capture.await_segment(SYN | ACK, Some(syn.destination), Some(syn.source), SOON).unwrap();
        assert_eq!(answer.acknowledgment, syn.sequence + 1);
    };

    for (target, source) in pair.targets(80).into_iter().zip(sources) {
        answered(&pair.syn(source, target));

        // Behind options and extension headers a kernel finds the same SYN.
        // (It refuses more than 7 bytes of padding; 0x1e is an experimental option, passed over when unknown.)
        let mut decorated = pair.syn(SocketAddr::new(source.ip(), 40_001), target);
        decorated.ip_options = vec![1, 1, 1, 1];
        decorated.extension_headers = vec![
            ExtensionHeader { kind: 0, body: vec![1, 4, 0, 0, 0, 0] },
            ExtensionHeader { kind: 60, body: vec![0x1e, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] },
        ];
        answered(&decorated);

        // A wrong checksum or a VLAN that nobody has is not answered; the next good SYN is.
        let errors = Counters::of(&pair.pod).unwrap().tcp("InCsumErrors");
        let wrong = pair.syn(SocketAddr::new(source.ip(), 40_002), target);
        sender.send(&Segment { checksum: Checksum::Wrong, ..wrong }).unwrap();
        let tagged = pair.syn(SocketAddr::new(source.ip(), 40_003), target);
        sender.send(&Segment { vlans: vec![7], ..tagged }).unwrap();
        answered(&pair.syn(SocketAddr::new(source.ip(), 40_004), target));
        assert_eq!(Counters::of(&pair.pod).unwrap().tcp("InCsumErrors"), errors + 1);

        let half_open: BTreeSet<u16> = sockets::tcp_sockets(&pair.pod)
            .unwrap()
            .iter()
            .filter(|socket| socket.state == SocketState::SynReceived)
            .filter(|socket| socket.remote.ip().to_canonical() == source.ip())
            .map(|socket| socket.remote.port())
            .collect();
        assert_eq!(half_open, BTreeSet::from([40_000, 40_001, 40_004]));
    }
}

#[test]
fn a_flood_is_answered_with_cookies() {
    let pair = Pair::new().unwrap();
    let config = ServerConfig { backlog: 64, ..ServerConfig::default() };
    let _server = Server::start(&pair.pod, config).unwrap();
    let sender = Sender::open(&pair.client, INTERFACE).unwrap();
    let received = || interface_counters(&pair.pod, INTERFACE).unwrap().received;
    let (before, start) = (received(), monotonic_now());

    for number in 0..2500 {
        let source = SocketAddr::from(([198, 51, 100, 7], 20_000 + number));
        sender.send(&pair.syn(source, pair.targets(80)[0])).unwrap();
    }

    let took = Duration::from_nanos(monotonic_now() - start);
    assert!(took < Duration::from_secs(1), "{took:?}");
    await_condition("cookies", SOON, || Counters::of(&pair.pod).unwrap().tcp_ext("SyncookiesSent") >= 2400).unwrap();
    assert!(received() >= before + 2500);
}

#[test]
fn pods_of_one_family() {
    for families in [Families::V4, Families::V6] {
        let world = World::with(WorldConfig { families, ports: vec![80, 8080] }).unwrap();
        let bind = if families == Families::V4 { Bind::V4 } else { Bind::V6 };
        let _a = HaProxy::start_with(&world.pod_a, "a", &[80, 8080], bind).unwrap();
        for port in [80, 8080] {
            let targets = world.targets(port);
            assert_eq!(targets.len(), 1);
            assert_eq!(connect_once(&world.client, targets[0], SOON).outcome, served_by("a"));
        }
    }
}

#[test]
fn the_source_port_can_be_chosen_and_no_node_hides_the_client() {
    let world = World::new().unwrap();
    let _server = Server::start(&world.pod_a, ServerConfig::default()).unwrap();
    for target in world.targets(80) {
        let attempt = connect_from(&world.client, 40_000, target, SOON);
        assert_eq!(attempt.outcome, served_by("server"));
        assert_eq!(attempt.source_port, Some(40_000));
        let remotes: Vec<SocketAddr> =
            sockets::tcp_sockets(&world.pod_a).unwrap().iter().map(|socket| socket.remote).collect();
        let port_seen = remotes
            .iter()
            .any(|remote| remote.port() == 40_000 && world.client.has_address(remote.ip().to_canonical()).unwrap());
        assert!(port_seen, "{remotes:?}");
    }
}

#[test]
fn output_is_kept_and_read_while_a_process_runs() {
    let pair = Pair::new().unwrap();
    let script = "echo first; echo second >&2; read line < /dev/null; exec sleep 600";
    let process = Process::start("shell", pair.pod.command("sh").unwrap().args(["-c", script])).unwrap();
    assert_eq!(process.wait_for_line("sec", SOON).unwrap().stream, Stream::Error);
    assert_eq!(process.wait_for_line("first", SOON).unwrap().text, "first");
    assert!(process.wait(Duration::from_millis(20)).is_err());
    process.signal(Signal::TERM).unwrap();
    assert!(!process.wait(SOON).unwrap().success());
    let error = process.wait_for_line("third", SOON).unwrap_err();
    assert!(format!("{error:#}").contains("second"), "{error:#}");
}

fn served_by(name: &str) -> Outcome {
    Outcome::Served { by: name.to_owned() }
}

fn in_namespace_of(pid: u32, host: &Host) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [process, host] = [PathBuf::from(format!("/proc/{pid}/ns/net")), host.path().to_owned()]
        .map(|path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok());
    process == host
}
