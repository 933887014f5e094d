//! Kubelet's probes are told from clients by the control group of the process that sent the SYN, and by nothing that a
//! client could forge.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::{net::SocketAddr, time::Duration};

use lastsyn_tests::{
    Agent, AgentConfig, Host, PacedClient, PodGroup, PodNetwork, Process, Server, ServerConfig,
    agent::{self, Counts, counts},
    await_condition, connect_once, control_group, http,
    pod_network::Plugin,
};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const PORT: u16 = 80;
const KUBELET: &str = "kube-probe/1.37";

/// A pod with a server and an agent, on a node that has a kubelet.
struct Scene {
    agent: Agent,
    _server: Server,
    network: PodNetwork,
    /// Below them: their processes have ended by then.
    pods: PodGroup,
    kubelet: PodGroup,
    other: PodGroup,
}

impl Scene {
    fn new(plugin: Plugin) -> Self {
        Self::with(plugin, |config| config)
    }

    fn with(plugin: Plugin, change: impl Fn(AgentConfig) -> AgentConfig) -> Self {
        let network = PodNetwork::new(plugin).unwrap();
        let [pods, kubelet, other] = [(); 3].map(|()| PodGroup::new(&network.lab).unwrap());
        let server = Server::start(&network.pod, ServerConfig::default()).unwrap();
        let config = AgentConfig::default()
            .env("LASTSYN_LISTENERS_WATCH", "80")
            .env("LASTSYN_LISTENERS_PROBES", "[{port: 80, period: 1s}]")
            .env("LASTSYN_DRAIN_QUIET_PERIOD", "3s")
            .env("LASTSYN_DRAIN_HANDSHAKE_GRACE", "0s")
            .env("LASTSYN_DRAIN_MAX_WAIT", "10s");
        let two = ["setpriv", "--bounding-set=-all,+bpf,+net_admin", "--inh-caps=-all"].map(str::to_owned);
        let through = pods.container("agent").unwrap().into_iter().chain(two);
        let agent = Agent::start(&network.pod, change(config).through(through)).unwrap();
        Self { agent, _server: server, network, pods, kubelet, other }
    }

    /// Runs a script in a host, in a control group.
    fn run(host: &Host, group: &PodGroup, script: &str) -> Process {
        let through = group.container("process").unwrap();
        let [program, arguments @ ..] = through.as_slice() else { panic!("no program") };
        let mut command = host.command(program).unwrap();
        Process::start("a process", command.args(arguments).args(["bash", "-c", script])).unwrap()
    }

    /// Asks the agent in kubelet's name.
    fn ask(host: &Host, group: &PodGroup, target: SocketAddr) {
        let request =
            format!("GET /healthz HTTP/1.1\\r\\nHost: a\\r\\nUser-Agent: {KUBELET}\\r\\nConnection: close\\r\\n\\r\\n");
        let script = format!("{}; printf '{request}' >&3; grep -q '200 OK' <&3", open(target));
        Self::run(host, group, &script).wait_for_success(SOON).unwrap();
    }

    /// One connection to the server over each family.
    fn connect(host: &Host, group: &PodGroup) {
        let script = PodNetwork::pod(PORT).map(open).join("; ");
        Self::run(host, group, &script).wait_for_success(SOON).unwrap();
    }

    fn probes(&self) -> Value {
        self.agent.status_of_now().unwrap()["sensor"]["probes"].clone()
    }

    fn counted(&self) -> [Counts; 2] {
        let status = self.agent.status_of_now().unwrap();
        ["IPv4", "IPv6"].map(|family| counts(&status, PORT, family).unwrap())
    }

    fn learn(&self) {
        Self::ask(&self.network.node, &self.kubelet, PodNetwork::pod(agent::PORT)[0]);
        await_condition("kubelet's group", SOON, || self.probes()["method"] == "controlGroup").unwrap();
    }

    /// Kubelet probes the server every second over both families, until the process is dropped.
    fn probe(&self) -> Process {
        let [v4, v6] = PodNetwork::pod(PORT).map(open);
        let script = format!("while :; do {v4}; {v6}; exec 3>&-; sleep 1; done");
        Self::run(&self.network.node, &self.kubelet, &script)
    }
}

/// The words of a script that open a connection.
fn open(target: SocketAddr) -> String {
    format!("exec 3<>/dev/tcp/{}/{}", target.ip(), target.port())
}

fn new(count: u64) -> [Counts; 2] {
    [Counts::new(count); 2]
}

#[test]
fn kubelet_is_learnt_over_either_family_and_from_nobody_else() {
    for family in [0, 1] {
        let scene = Scene::new(Plugin::Routed);
        let PodNetwork { client, node, other_pod, .. } = &scene.network;
        let target = PodNetwork::pod(agent::PORT)[family];
        let why = |words: &str| {
            let told = scene.probes();
            assert_eq!(told["method"], "notLearnt", "by a User-Agent alone: {told}");
            assert!(told["why"].as_str().unwrap().contains(words), "{told}");
        };
        why("has not asked");
        for (host, group) in [(client, &scene.other), (other_pod, &scene.other), (other_pod, &scene.kubelet)] {
            Scene::ask(host, group, target);
            why("no process of this node");
        }
        Scene::ask(node, &scene.pods, target);
        why("in which pods are");
        Scene::ask(node, &scene.kubelet, target);
        await_condition("kubelet's group", SOON, || scene.probes()["method"] == "controlGroup").unwrap();
    }
}

#[test]
fn only_the_syns_of_kubelet_are_probes_whatever_connects_the_pods() {
    for plugin in [Plugin::Routed, Plugin::Bridge, Plugin::RedirectPeer] {
        let scene = Scene::new(plugin);
        let PodNetwork { client, node, other_pod, .. } = &scene.network;
        Scene::connect(node, &scene.kubelet);
        assert_eq!(scene.counted(), new(1), "{plugin:?}: not known yet");
        scene.learn();
        // Outside, masqueraded; in another pod; with `hostNetwork`; of the node's system.
        for (host, group) in
            [(client, &scene.other), (other_pod, &scene.kubelet), (node, &scene.pods), (node, &scene.other)]
        {
            Scene::connect(host, group);
        }
        assert_eq!(scene.counted(), new(5), "{plugin:?}: others");
        Scene::connect(node, &scene.kubelet);
        assert_eq!(scene.counted(), [Counts { probe: 1, ..Counts::new(5) }; 2], "{plugin:?}");
    }
}

#[test]
fn kubelet_s_probes_hold_no_drain_whatever_connects_the_pods() {
    for plugin in [Plugin::Routed, Plugin::Bridge, Plugin::RedirectPeer] {
        let scene = Scene::new(plugin);
        scene.learn();
        let _probing = scene.probe();
        let verdict = scene.agent.drain().unwrap().wait(SOON).unwrap().verdict;
        assert_eq!(verdict["reason"], "quiet", "{plugin:?}: {verdict}");
        for family in ["IPv4", "IPv6"] {
            let told = counts(&verdict, PORT, family).unwrap();
            assert!(told.probe >= 2 && told.sum() == told.probe, "{plugin:?}: {verdict}");
        }
    }
}

#[test]
fn clsact_tells_them_too() {
    let scene = Scene::with(Plugin::Routed, |config| config.env("LASTSYN_SENSOR_STRATEGY", "clsact"));
    scene.learn();
    Scene::connect(&scene.network.node, &scene.kubelet);
    Scene::connect(&scene.network.node, &scene.other);
    assert_eq!(scene.counted(), [Counts { probe: 1, ..Counts::new(1) }; 2]);
}

#[test]
fn a_client_with_the_node_s_address_holds_a_drain_while_kubelet_probes() {
    let scene = Scene::new(Plugin::Bridge);
    scene.learn();
    let _probing = scene.probe();
    let call = scene.agent.drain().unwrap();
    while call.answered().unwrap().is_none() {
        for target in PodNetwork::pod(PORT) {
            connect_once(&scene.network.client, target, SOON);
        }
    }
    let verdict = call.wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "bound", "{verdict}");
}

#[test]
fn only_the_ports_that_are_named_are_probed() {
    let scene = Scene::with(Plugin::Routed, |config| config.env("LASTSYN_LISTENERS_PROBES", "[81]"));
    scene.learn();
    Scene::connect(&scene.network.node, &scene.kubelet);
    assert_eq!(scene.counted(), new(1));
}

#[test]
fn without_a_named_port_no_probe_is_told_and_the_status_says_why() {
    for (probes, words) in [("auto", "has not been read"), ("off", "is off")] {
        let scene = Scene::with(Plugin::Routed, |config| config.env("LASTSYN_LISTENERS_PROBES", probes));
        Scene::ask(&scene.network.node, &scene.kubelet, PodNetwork::pod(agent::PORT)[0]);
        let told = scene.probes();
        assert_eq!(told["method"], "off");
        assert!(told["why"].as_str().unwrap().contains(words), "{told}");
        Scene::connect(&scene.network.node, &scene.kubelet);
        assert_eq!(scene.counted(), new(1));
    }
}

/// A kubelet in the root group, which is one of all processes there: it probes every second, over both families.
struct Untold {
    scene: Scene,
    _probing: [PacedClient; 2],
}

impl Untold {
    /// Until the agent knows its pace over both families.
    fn learnt() -> Self {
        // The clients' sockets are this process's.
        control_group::enter_root().unwrap();
        let scene = Scene::with(Plugin::Bridge, |config| {
            config.env("LASTSYN_DRAIN_QUIET_PERIOD", "2s").env("LASTSYN_DRAIN_MAX_WAIT", "15s")
        });
        let pace = |target| PacedClient::start(&scene.network.node, vec![target], 1).unwrap();
        let probing = PodNetwork::pod(PORT).map(pace);
        await_condition("the pace", 4 * SOON, || {
            scene.probes()["method"] == "pace" && scene.counted().iter().all(|counts| counts.probe > 0)
        })
        .unwrap();
        Self { scene, _probing: probing }
    }
}

#[test]
fn where_nothing_tells_the_sender_the_pace_does_and_the_verdict_says_so() {
    let Untold { scene, _probing } = Untold::learnt();
    let verdict = scene.agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "unverified", "{verdict}");
    let told = verdict["notObserved"].to_string();
    assert!(told.contains("came at the ticks of kubelet's probe"), "{told}");
}

#[test]
fn of_a_burst_from_the_node_most_are_clients() {
    let Untold { scene, _probing } = Untold::learnt();
    let _burst = PacedClient::start(&scene.network.node, PodNetwork::pod(PORT).to_vec(), 10).unwrap();
    let verdict = scene.agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "bound", "{verdict}");
}

#[test]
fn a_client_behind_the_node_is_one_whatever_its_pace() {
    let Untold { scene, _probing } = Untold::learnt();
    let _client = PacedClient::start(&scene.network.client, PodNetwork::pod(PORT).to_vec(), 1).unwrap();
    let verdict = scene.agent.drain().unwrap().wait(SOON).unwrap().verdict;
    assert_eq!(verdict["reason"], "bound", "{verdict}");
}

#[test]
fn once_kubelet_is_known_its_pace_tells_nothing_any_more() {
    let Untold { scene, _probing } = Untold::learnt();
    scene.learn();
    let before = scene.counted();
    await_condition("two more", SOON, || {
        scene.counted().iter().zip(before).all(|(after, before)| after.since(before).new >= 2)
    })
    .unwrap();
    assert_eq!(scene.counted().map(|counts| counts.probe), before.map(|counts| counts.probe));
}

/// The status code with which the hook is answered.
fn call_the_hook(host: &Host, target: SocketAddr) -> (u16, String) {
    let answer = http::get(host, target, "/drain", SOON).unwrap();
    (answer.status, answer.body)
}

#[test]
fn s10_a_process_of_the_node_may_call_the_hook_where_that_is_configured_and_nobody_from_elsewhere() {
    for plugin in [Plugin::Routed, Plugin::Bridge, Plugin::RedirectPeer] {
        let scene = Scene::with(plugin, |config| {
            // Longer than anybody else from outside may stay.
            config
                .env("LASTSYN_SERVER_HOOK_FROM", "node")
                .env("LASTSYN_DRAIN_MIN_WAIT", "11s")
                .env("LASTSYN_DRAIN_MAX_WAIT", "12s")
        });
        for target in PodNetwork::pod(agent::PORT) {
            for host in [&scene.network.client, &scene.network.other_pod] {
                let (status, body) = call_the_hook(host, target);
                assert!(
                    status == 403 && body.contains("processes of its node"),
                    "{plugin:?} {target}: {status} {body}"
                );
            }
        }
        assert_eq!(scene.agent.status().unwrap()["state"], "serving", "nobody has called it");
        let (status, body) = call_the_hook(&scene.network.node, PodNetwork::pod(agent::PORT)[0]);
        assert!(status == 200 && body.contains("\"reason\":\"quiet\""), "{plugin:?}: {status} {body}");
    }
}

#[test]
fn s10_otherwise_a_process_of_the_node_may_not() {
    let scene = Scene::new(Plugin::Routed);
    let (status, body) = call_the_hook(&scene.network.node, PodNetwork::pod(agent::PORT)[0]);
    assert!(status == 403 && body.contains("use the exec hook"), "{status} {body}");
}

#[test]
fn s10_a_sensor_that_knows_nobody_lets_no_process_of_the_node_in_and_says_so() {
    let scene = Scene::with(Plugin::Routed, |config| {
        config.env("LASTSYN_SERVER_HOOK_FROM", "node").env("LASTSYN_SENSOR_STRATEGY", "counters")
    });
    assert_eq!(call_the_hook(&scene.network.node, PodNetwork::pod(agent::PORT)[0]).0, 403);
    assert!(
        scene.agent.process().report().contains("hookFrom: node is without effect"),
        "{}",
        scene.agent.process().report()
    );
}
