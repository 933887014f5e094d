//! E6: a drain waits for the load balancers that ask this node for its local endpoints.

use super::{
    cluster::{LEAVING, READY, routing, with_routing},
    routing::withdrawn,
    truth::ms,
    world::World,
};
use crate::core::{
    cluster::{
        ClusterEvent, LocalEndpointsOutcome, LocalEndpointsReport, Service, ServiceName, Slice, SliceName,
        TrafficPolicy,
    },
    settings::{RoutingSettings, Settings},
    verdict::{Condition, Reason},
};

/// What this node's `healthCheckNodePort` of the Service answers.
fn local_endpoints(world: &mut World, endpoints: u64) {
    let (sent_at, received_at) = (world.now, world.now);
    world.say(ClusterEvent::LocalEndpoints(LocalEndpointsReport {
        service: ServiceName("web".to_owned()),
        connection: crate::core::cluster::ConnectionId(7),
        sent_at,
        received_at,
        outcome: LocalEndpointsOutcome::Endpoints(endpoints),
    }));
}

/// The hook was called, with a window of 10 s, and `web` has a `healthCheckNodePort`.
fn behind_a_load_balancer() -> World {
    let window = RoutingSettings { load_balancer_window: ms(10_000), fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(window), ..with_routing() });
    let mut service = world.cluster.service(TrafficPolicy::Cluster);
    service.health_check_node_port = Some(32_000);
    world.cluster.services.insert(service.name.clone(), service);
    world.hook();
    world
}

#[test]
fn e6_the_port_to_ask_is_told_while_a_drain_runs() {
    let mut world = behind_a_load_balancer();
    let ports: Vec<_> = world.core.local_ports().into_iter().collect();
    assert_eq!(ports, [(ServiceName("web".to_owned()), 32_000)]);
    world.run_out();
    assert!(world.core.local_ports().is_empty(), "the drain is over");
}

#[test]
fn e6_a_load_balancers_window_holds_the_drain() {
    let mut world = behind_a_load_balancer();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(2500);
    world.fence_shows();
    world.run_to(9000);
    assert_eq!(world.holding(), [Condition::LoadBalancer]);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 10_100));
    assert_eq!(answer.verdict.held_by.load_balancer_ms, 10_100);
}

#[test]
fn e6_starts_again_where_a_gap_may_have_hidden_a_withdrawal() {
    let mut world = behind_a_load_balancer();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(5000);
    // The watch breaks off, and lists a later version: in between the pod may have been ready again.
    world.write_slice(&[(1, LEAVING), (2, READY)]);
    let slices = world.cluster.slices.values().cloned().collect();
    world.say(ClusterEvent::SlicesListed(slices));
    world.run_to(8000);
    world.fence_shows();
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 15_000));
}

#[test]
fn e6_counts_from_the_first_zero_of_this_node() {
    let mut world = behind_a_load_balancer();
    local_endpoints(&mut world, 1);
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(2500);
    world.fence_shows();
    world.run_to(3000);
    local_endpoints(&mut world, 0);
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 13_000));
}

#[test]
fn e6_the_window_of_each_service_counts_from_its_own_withdrawal() {
    let window = RoutingSettings { load_balancer_window: ms(10_000), fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(window), ..with_routing() });
    let other = |world: &mut World, ours| {
        let slice = world.cluster.slice(&[(1, ours), (2, READY)]);
        let (name, service) = (SliceName("other-abc".to_owned()), ServiceName("other".to_owned()));
        let slice = Slice { name: name.clone(), service, ..slice };
        world.cluster.slices.insert(name, slice.clone());
        slice
    };
    for name in ["web", "other"] {
        let service = world.cluster.service(TrafficPolicy::Cluster);
        let name = ServiceName(name.to_owned());
        let service = Service { name: name.clone(), health_check_node_port: Some(32_000), ..service };
        world.cluster.services.insert(name, service);
    }
    other(&mut world, READY);
    world.hook();
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(5000);
    let slice = other(&mut world, LEAVING);
    world.say(ClusterEvent::SliceWritten(slice));
    world.run_to(7400);
    world.fence_shows();
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 15_000));
}

/// `web` has another `healthCheckNodePort` from now on, and nothing else of it is new.
fn health_check_node_port(world: &mut World, port: Option<u16>) {
    let mut service = world.cluster.service(TrafficPolicy::Cluster);
    service.health_check_node_port = port;
    world.cluster.services.insert(service.name.clone(), service.clone());
    world.say(ClusterEvent::ServiceWritten(service));
}

#[test]
fn e6_a_service_that_has_lost_its_port_keeps_its_window_and_no_more() {
    let window = RoutingSettings { load_balancer_window: ms(10_000), fence: true, ..routing() };
    let mut world = World::at_rest(Settings { routing: Some(window), ..with_routing() });
    world.hook();
    health_check_node_port(&mut world, Some(32_000));
    health_check_node_port(&mut world, None);
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(2500);
    world.fence_shows();
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 10_100));
}

#[test]
fn e6_a_withdrawn_service_that_gains_a_port_has_its_window_from_then() {
    let window = RoutingSettings { load_balancer_window: ms(10_000), fence: true, ..routing() };
    let mut world = withdrawn(Settings { routing: Some(window), ..with_routing() });
    world.run_to(1000);
    health_check_node_port(&mut world, Some(32_000));
    world.run_to(2500);
    world.fence_shows();
    let answer = world.run_out();
    assert_eq!((answer.reason(), answer.at_ms()), (Reason::RoutedAway, 11_000));
}

/// In a normal deletion the endpoint passes through "serving, not ready": 0 is answered then, and the fallback still
/// routes here.
#[test]
fn c8_zero_local_endpoints_confirm_no_node() {
    let mut world = World::at_rest(with_routing());
    let mut service = world.cluster.service(TrafficPolicy::Cluster);
    service.health_check_node_port = Some(32_000);
    world.cluster.services.insert(service.name.clone(), service);
    world.hook();
    local_endpoints(&mut world, 1);
    world.run_to(100);
    world.slice(&[(1, LEAVING), (2, READY)]);
    world.run_to(3000);
    local_endpoints(&mut world, 0);
    assert_eq!(world.run_out().reason(), Reason::Bound, "no node has shown anything");
}
