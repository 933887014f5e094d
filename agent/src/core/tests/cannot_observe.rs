//! Everything that an agent may be unable to observe of the cluster, and what becomes of a drain then: the table that
//! `cargo test -p lastsyn --lib what_cannot_be_observed -- --nocapture` prints.

use super::{
    cluster::{LEAVING, READY, node, with_routing},
    truth::ms,
    world::World,
};
use crate::core::{
    cluster::{ClusterEvent, HealthOutcome, NodeName, ReadOutcome, ServiceProxy, Snapshot, TrafficPolicy},
    confirm::OperatingSystem,
    verdict::{NotObserved, Reason},
};

/// One thing that cannot be observed.
struct Row {
    what: &'static str,
    /// Plays the drain from the hook's call on, which it makes itself.
    play: fn(&mut World),
    reason: Reason,
    /// What the verdict has to name, by `what` and a part of `why`.
    names: &'static [(&'static str, &'static str)],
}

fn no_status() -> HealthOutcome {
    HealthOutcome::NoStatus("its kube-proxy is older than Kubernetes 1.33".to_owned())
}

/// The hook is called, and the pod withdrawn 100 ms later.
fn withdraw(world: &mut World) {
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
}

/// One node syncs, and the other answers with this, until the drain is over.
fn one_node(world: &mut World, outcome: &HealthOutcome) {
    while world.answers.is_empty() {
        let next = world.now + ms(500);
        world.run(next);
        world.health("here", true);
        world.report("there", outcome.clone());
    }
}

fn unreadable_services(world: &mut World) {
    world.cluster.silent = true;
    world.hook();
    let nodes = world.cluster.nodes.clone();
    let slices = world.cluster.slices.clone().into_values().collect();
    world.say(ClusterEvent::SlicesListed(slices));
    world.say(ClusterEvent::NodesListed(nodes));
    world.say(ClusterEvent::ServicesUnreadable("forbidden".to_owned()));
    world.cluster.silent = false;
    world.cluster.services.clear();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.syncs(20_000);
}

fn unreadable_nodes(world: &mut World) {
    world.cluster.silent = true;
    world.hook();
    let (services, slices) = (world.cluster.services.clone(), world.cluster.slices.clone());
    world.say(ClusterEvent::ServicesListed(services.into_values().collect()));
    world.say(ClusterEvent::SlicesListed(slices.into_values().collect()));
    world.say(ClusterEvent::NodesUnreadable("forbidden".to_owned()));
    world.cluster.silent = false;
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    let shown = Snapshot { nodes: None, ..world.cluster.snapshot() };
    world.cluster.reads = Some(ReadOutcome::Shows(shown));
}

fn another_proxy(world: &mut World, proxy: ServiceProxy) {
    for slice in world.cluster.slices.values_mut() {
        slice.proxy = proxy;
    }
    world.hook();
}

fn path_of_the_pod(world: &mut World) {
    world.hook();
    let gate = NotObserved {
        what: "readinessGate".to_owned(),
        name: Some("target-health.elbv2.k8s.aws/web".to_owned()),
        family: None,
        why: "a load balancer may send to the pod's own address".to_owned(),
    };
    world.say(ClusterEvent::PodPaths([gate].into()));
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.syncs(20_000);
}

fn local_policy(world: &mut World) {
    let service = world.cluster.service(TrafficPolicy::Local);
    world.cluster.services.insert(service.name.clone(), service);
    withdraw(world);
    world.syncs(59_000);
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn rows() -> Vec<Row> {
    vec![
        Row {
            what: "slices may not be read, or the API server has never answered",
            play: |world| {
                world.cluster.silent = true;
                world.hook();
                world.say(ClusterEvent::SlicesUnreadable("it has never answered this agent".to_owned()));
            },
            reason: Reason::Unverified,
            names: &[("api", "never answered"), ("nodes", "not been listed")],
        },
        Row {
            what: "the API server does not answer, and has before",
            play: |world| {
                world.cluster.silent = true;
                world.hook();
            },
            reason: Reason::Bound,
            names: &[("nodes", "not been listed")],
        },
        Row {
            what: "no slice lists the pod",
            play: |world| {
                world.write_slice(&[(2, READY)]);
                world.hook();
            },
            reason: Reason::Unverified,
            names: &[("routing", "no EndpointSlice")],
        },
        Row {
            what: "Services may not be read",
            play: unreadable_services,
            reason: Reason::Unverified,
            names: &[("policy", "forbidden")],
        },
        Row {
            what: "nodes may not be listed",
            play: unreadable_nodes,
            reason: Reason::Unverified,
            names: &[("nodes", "forbidden")],
        },
        Row {
            what: "the API server lets nothing be read again at the end",
            play: |world| {
                world.cluster.reads = Some(ReadOutcome::Forbidden("forbidden".to_owned()));
                withdraw(world);
                world.syncs(20_000);
            },
            reason: Reason::Unverified,
            names: &[("api", "forbidden")],
        },
        Row {
            what: "the API server fails at the end",
            play: |world| {
                world.cluster.reads = Some(ReadOutcome::Failed("503".to_owned()));
                withdraw(world);
                world.syncs(59_000);
            },
            reason: Reason::Bound,
            names: &[],
        },
        Row {
            what: "every node refuses: an egress policy, k3s on loopback",
            play: |world| {
                withdraw(world);
                for name in ["here", "there"] {
                    world.report(name, HealthOutcome::Refused);
                }
            },
            reason: Reason::Unverified,
            names: &[("node", "refused"), ("node", "refused")],
        },
        Row {
            what: "one node refuses, others give a status",
            play: |world| {
                withdraw(world);
                one_node(world, &HealthOutcome::Refused);
            },
            reason: Reason::Bound,
            names: &[("node", "not confirmed")],
        },
        Row {
            what: "one node accepts and does not answer",
            play: |world| {
                withdraw(world);
                one_node(world, &HealthOutcome::TimedOut);
            },
            reason: Reason::Bound,
            names: &[("node", "not confirmed")],
        },
        Row {
            what: "one node has a kube-proxy before 1.33, or another proxy",
            play: |world| {
                withdraw(world);
                one_node(world, &no_status());
            },
            reason: Reason::Unverified,
            names: &[("node", "1.33")],
        },
        Row {
            what: "a Node object goes in the drain",
            play: |world| {
                withdraw(world);
                world.cluster.nodes.retain(|node| node.name.0 == "here");
                world.say(ClusterEvent::NodeRemoved(NodeName("there".to_owned())));
                one_node(world, &HealthOutcome::Refused);
            },
            reason: Reason::Unverified,
            names: &[("node", "gone")],
        },
        Row {
            what: "a node joins in the drain and gives no status",
            play: |world| {
                withdraw(world);
                let joined = crate::core::cluster::Node { system: OperatingSystem::Linux, ..node("new") };
                world.cluster.nodes.push(joined.clone());
                world.say(ClusterEvent::NodeAdded(joined));
                world.syncs(59_000);
            },
            reason: Reason::Bound,
            names: &[("node", "not confirmed")],
        },
        Row {
            what: "a node that has had time, and shows no sync",
            play: |world| {
                withdraw(world);
                while world.answers.is_empty() {
                    let next = world.now + ms(500);
                    world.run(next);
                    world.health("here", false);
                    world.health("there", false);
                }
            },
            reason: Reason::Unverified,
            names: &[("sync", "waited"), ("sync", "waited")],
        },
        Row {
            what: "a headless Service",
            play: |world| another_proxy(world, ServiceProxy::Headless),
            reason: Reason::Unverified,
            names: &[("headless", "DNS"), ("nodes", "no Service")],
        },
        Row {
            what: "a Service of another proxy",
            play: |world| another_proxy(world, ServiceProxy::Foreign),
            reason: Reason::Unverified,
            names: &[("nodes", "no Service"), ("service-proxy-name", "another proxy")],
        },
        Row {
            what: "a load balancer that sends to the pod's own address",
            play: path_of_the_pod,
            reason: Reason::Unverified,
            names: &[("readinessGate", "load balancer")],
        },
        Row {
            what: "policy Local, and no other ready pod on the node",
            play: local_policy,
            reason: Reason::Bound,
            names: &[],
        },
        Row {
            what: "the last ready pod of a Service",
            play: |world| {
                world.hook();
                world.run_to(100);
                world.slice(&[(1, LEAVING)]);
                world.syncs(59_000);
            },
            reason: Reason::Bound,
            names: &[],
        },
        Row {
            what: "the withdrawal is taken back: the other endpoint goes",
            play: |world| {
                withdraw(world);
                world.run_to(1000);
                world.slice(&[(1, LEAVING), (2, [false, false, false])]);
                world.syncs(59_000);
            },
            reason: Reason::Bound,
            names: &[],
        },
        Row {
            what: "the agent's own watch is behind",
            play: |world| {
                withdraw(world);
                world.write_slice(&[(1, READY), (2, READY)]);
                world.syncs(59_000);
            },
            reason: Reason::Bound,
            names: &[],
        },
    ]
}

#[test]
fn what_cannot_be_observed_is_named_and_holds_no_longer_than_there_is_something_to_wait_for() {
    println!("| what | reason | after | named |\n| --- | --- | --- | --- |");
    for Row { what, play, reason, names } in rows() {
        let mut world = World::at_rest(with_routing());
        play(&mut world);
        if world.answers.is_empty() {
            world.run_out();
        }
        let answer = world.answers.first().expect("S1: an answer by the bound").clone();
        let named: Vec<_> =
            answer.verdict.not_observed.iter().map(|one| (one.what.as_str(), one.why.as_str())).collect();
        let shown: Vec<_> = named.iter().map(|(what, why)| format!("{what}: {why}")).collect();
        println!("| {what} | {} | {} ms | {} |", answer.reason().name(), answer.at_ms(), shown.join("; "));
        assert_eq!(answer.reason(), reason, "{what}: {named:?}");
        let matches = names.len() == named.len()
            && names.iter().zip(&named).all(|((what, part), (of, why))| what == of && why.contains(part));
        // At the bound the verdict may name more: whatever was still pending.
        let found = |(what, part): &(&str, &str)| named.iter().any(|(of, why)| what == of && why.contains(part));
        assert!(if reason == Reason::Bound { names.iter().all(found) } else { matches }, "{what}: {named:?}");
    }
}
