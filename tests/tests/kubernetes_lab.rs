//! The lab's Kubernetes: what its API server, kube-proxies and instruments show must be so, and nothing must be left of
//! them. `cargo xtask setup --kubernetes` makes the programs.

use std::{
    fs,
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, ensure};
use lastsyn_tests::{
    Host, Outcome, Process, Server, ServerConfig, await_condition, connect_once,
    kubernetes::{Cluster, ClusterConfig, Endpoint, KubePod, Mode, Node, PodSpec, Service, ServiceKind, ServiceSpec},
};

const PORT: u16 = 8080;
const SOON: Duration = Duration::from_secs(20);
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

#[test]
fn nftables_rules_follow_a_pods_life() {
    rules_follow_a_pods_life(Mode::Nftables).unwrap();
}

#[test]
fn iptables_rules_follow_a_pods_life() {
    rules_follow_a_pods_life(Mode::Iptables).unwrap();
}

fn rules_follow_a_pods_life(mode: Mode) -> Result<()> {
    let cluster = Cluster::up(mode)?;
    let service = cluster.service(&ServiceSpec::new("web", "web", PORT).kind(ServiceKind::LoadBalancer))?;
    let (first, _first_server) = serving_pod(&cluster, 0, "web-1")?;
    let (second, _second_server) = serving_pod(&cluster, 1, "web-2")?;

    // Both are reached over every path, family and node.
    let paths = paths(&cluster, &service)?;
    for (host, target) in &paths {
        for pod in ["web-1", "web-2"] {
            await_condition(&format!("{pod} by {target} from {}", host.role()), SOON, || {
                served_by(&connect_once(host, *target, SOON).outcome) == pod
            })?;
        }
    }

    let before = stamps(&cluster)?;
    first.delete()?;
    await_condition("the endpoint that terminates and serves", SOON, || {
        let listed = cluster.endpoints("web").unwrap_or_default();
        let own = listed.iter().filter(|listed| first.addresses().contains(&listed.address));
        let withdrawn = |own: &&Endpoint| !own.ready && own.serving && own.terminating;
        own.filter(withdrawn).filter(|own| own.node.as_deref() == Some("node-a")).count() == 2
    })?;
    cluster.await_routes(&first, PORT, false)?;
    await_condition("stamps that moved on every node", SOON, || {
        stamps(&cluster).is_ok_and(|now| now.iter().zip(&before).all(|(now, before)| now > before))
    })?;
    for (host, target) in &paths {
        for _ in 0..6 {
            let served = served_by(&connect_once(host, *target, SOON).outcome);
            ensure!(served == "web-2", "{target} from {}: {served}", host.role());
        }
    }
    cluster.await_routes(&second, PORT, true)?;
    first.finish()?;
    await_condition("the slices without the pod", SOON, || {
        let listed = cluster.endpoints("web").unwrap_or_default();
        listed.len() == 2 && listed.iter().all(|listed| second.addresses().contains(&listed.address))
    })
}

/// From nodes and the outside to the targets that lead to the Service.
fn paths(cluster: &Cluster, service: &Service) -> Result<Vec<(Host, SocketAddr)>> {
    cluster.balance_to(2)?;
    let mut paths = Vec::new();
    for node in cluster.nodes() {
        paths.extend(service.cluster().map(|target| (node.host().clone(), target)));
        paths.extend(service.on(node).into_iter().map(|target| (cluster.outside().clone(), target)));
    }
    paths.extend(service.balancer().into_iter().map(|target| (cluster.outside().clone(), target)));
    ensure!(paths.len() == 3 * 2 + 3 * 2 + 2, "{paths:?}");
    Ok(paths)
}

/// Of every node and family.
fn stamps(cluster: &Cluster) -> Result<Vec<String>> {
    let proxies = cluster.nodes().iter().map(Node::proxy);
    proxies.flat_map(|proxy| FAMILIES.map(|family| proxy.stamp(cluster.outside(), family))).collect()
}

#[test]
fn what_is_done_to_a_node_shows_in_its_rules() {
    let cluster = Cluster::with(&ClusterConfig { watch_proxy_on: Some(2), ..ClusterConfig::default() }).unwrap();
    cluster.service(&ServiceSpec::new("web", "web", PORT)).unwrap();
    let pods: Vec<_> = (0..6).map(|number| serving_pod(&cluster, 0, &format!("web-{number}")).unwrap()).collect();
    for (pod, _server) in &pods {
        cluster.await_routes(pod, PORT, true).unwrap();
    }
    let mut pods = pods.iter().map(|(pod, _server)| pod);
    let mut withdraw = || {
        let pod = pods.next().unwrap();
        pod.delete().unwrap();
        pod
    };
    let outside = cluster.outside();
    let gone = |pod: &KubePod, node: usize| {
        let endpoints = pod.endpoints(PORT);
        endpoints.iter().all(|endpoint| !cluster.nodes()[node].routes_to(*endpoint).unwrap())
    };
    let leaves = |pod: &KubePod, node: usize| {
        await_condition(&format!("{} out of the rules of node {node}", pod.name()), SOON, || gone(pod, node)).unwrap();
    };
    let node = &cluster.nodes()[1];

    // Frozen: no answer, and the old rules.
    node.proxy().freeze().unwrap();
    let pod = withdraw();
    leaves(pod, 0);
    assert!(!gone(pod, 1));
    assert!(node.proxy().livez(outside).is_err());
    node.proxy().thaw().unwrap();
    leaves(pod, 1);

    // Killed: refused, and the old rules until it is started again.
    node.proxy().kill().unwrap();
    let pod = withdraw();
    leaves(pod, 0);
    assert!(!gone(pod, 1));
    let health = (node.addresses()[0], 10_256).into();
    assert_eq!(connect_once(outside, health, SOON).outcome, Outcome::Refused);
    node.proxy().restart().unwrap();
    node.proxy().await_status(outside).unwrap();
    leaves(pod, 1);

    // Cut off: it calls itself healthy, with the old stamp and the old rules.
    let before = node.proxy().stamp(outside, "IPv4").unwrap();
    node.cut().unwrap();
    let pod = withdraw();
    leaves(pod, 0);
    assert!(!gone(pod, 1));
    let answer = node.proxy().livez(outside).unwrap();
    assert_eq!(answer["status"]["IPv4"]["healthy"], true, "{answer}");
    assert_eq!(answer["status"]["IPv4"]["lastUpdated"], before.as_str(), "{answer}");
    node.heal().unwrap();
    leaves(pod, 1);

    // Its slices stand still while its Services go on: stamps move, and the old rules stay.
    let node = &cluster.nodes()[2];
    leaves(pod, 2);
    let before = node.proxy().stamp(outside, "IPv4").unwrap();
    cluster.watch_proxy().unwrap().stall("endpointslices");
    let pod = withdraw();
    leaves(pod, 0);
    cluster.service(&ServiceSpec::new("other", "other", PORT)).unwrap();
    await_condition("a later stamp", SOON, || node.proxy().stamp(outside, "IPv4").unwrap() > before).unwrap();
    assert!(!gone(pod, 2));
    cluster.watch_proxy().unwrap().release();
    leaves(pod, 2);
}

#[test]
fn a_panic_leaves_nothing_of_a_cluster() {
    let mut traces = None;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let cluster = Cluster::up(Mode::Nftables).unwrap();
        let (pod, _server) = serving_pod(&cluster, 0, "web-1").unwrap();
        cluster.nodes()[0].proxy().freeze().unwrap();
        let hosts = [cluster.outside(), pod.host()].into_iter().chain(cluster.nodes().iter().map(Node::host));
        let namespaces: Vec<PathBuf> = hosts.map(|host| host.path().to_owned()).collect();
        let processes = processes_of(cluster.lab().directory());
        assert!(processes.len() >= 6, "{processes:?}");
        let all: Vec<_> =
            namespaces.into_iter().chain(processes).chain([cluster.lab().directory().to_owned()]).collect();
        traces = Some(all);
        let _stopped = Process::start("sleep", pod.host().command("sleep").unwrap().arg("600")).unwrap();
        cluster.outside().run(|| panic!("as a failed test does"));
    }));
    assert!(panicked.is_err());
    // What a node's proxy had started to write its rules goes after it, and init reaps that.
    let mut traces = traces.expect("the cluster stood before the panic");
    let gone = await_condition("nothing that is left", SOON, || {
        traces.retain(|trace| trace.exists());
        traces.is_empty()
    });
    let left: Vec<_> = traces.iter().map(|trace| format!("{}: {}", trace.display(), command_line(trace))).collect();
    assert!(gone.is_ok(), "{left:#?}");
}

/// The processes that were started with a file of a directory.
fn processes_of(directory: &Path) -> Vec<PathBuf> {
    let directory = directory.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    processes.filter(|process| command_line(process).contains(&directory)).collect()
}

/// Empty for what is no process, and for one that has ended and is not reaped.
fn command_line(process: &Path) -> String {
    fs::read(process.join("cmdline")).map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).unwrap_or_default()
}

fn serving_pod(cluster: &Cluster, node: usize, name: &str) -> Result<(KubePod, Server)> {
    let pod = cluster.pod(node, &PodSpec::new(name, "web", PORT))?;
    let config = ServerConfig { name: name.to_owned(), port: PORT, ..ServerConfig::default() };
    let server = Server::start(pod.host(), config)?;
    pod.set_ready(true)?;
    Ok((pod, server))
}

fn served_by(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Served { by } => by.clone(),
        other => format!("nobody: {other:?}"),
    }
}
