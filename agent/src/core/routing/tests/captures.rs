//! What a real API server (1.36) said while the pod `web3` was deleted, copied by hand: three nodes, a dual-stack
//! Service `web-lb` with `externalTrafficPolicy: Local`.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    super::{Routing, State},
    scene::{Conditions, DEAD, LEAVING, READY, port, service},
};
use crate::core::{
    clock::Monotonic,
    cluster::{
        Endpoint, NodeName, ResourceVersion, Service, ServiceName, ServiceProxy, Slice, SliceName, TrafficPolicy,
    },
    listener::Family,
};

struct Captured {
    name: &'static str,
    family: Family,
    ready: &'static str,
    terminating: &'static str,
    /// On node-b, node-c and node-a, in the slices' order. The second is the pod.
    addresses: [&'static str; 3],
}

const V6: Captured = Captured {
    name: "web-lb-dnwmk",
    family: Family::V6,
    ready: "449",
    terminating: "519",
    addresses: ["fd00:244:2::12", "fd00:244:3::13", "fd00:244:1::11"],
};

const V4: Captured = Captured {
    name: "web-lb-fd925",
    family: Family::V4,
    ready: "448",
    terminating: "517",
    addresses: ["10.244.2.12", "10.244.3.13", "10.244.1.11"],
};

fn slice(captured: &Captured, version: &str, pod: Conditions) -> Slice {
    let endpoint = |address: &str, node: &str, [ready, serving, terminating]: Conditions| {
        let address: IpAddr = address.parse().unwrap();
        Endpoint {
            address,
            addresses: BTreeSet::from([address]),
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
            node: Some(NodeName(node.into())),
        }
    };
    let [web2, web3, web1] = captured.addresses;
    Slice {
        name: SliceName(captured.name.into()),
        version: ResourceVersion(version.into()),
        service: ServiceName("web-lb".into()),
        family: captured.family,
        proxy: ServiceProxy::KubeProxy,
        ports: vec![port("http", 8080)],
        endpoints: vec![
            endpoint(web2, "node-b", READY),
            endpoint(web3, "node-c", pod),
            endpoint(web1, "node-a", READY),
        ],
    }
}

fn drained(service: Service) -> Routing {
    let pod = [V4.addresses[1], V6.addresses[1]].map(|address| address.parse().unwrap());
    let mut routing = Routing::new(BTreeSet::from(pod), NodeName("node-c".into()));
    let at = Monotonic::from_nanos;
    routing.services_listed(vec![service], at(1));
    routing.slices_listed(&[slice(&V6, V6.ready, READY), slice(&V4, V4.ready, READY)], at(2));
    assert!(routing.routes().all(|route| route.state == State::Routed));
    assert_eq!(routing.families(), BTreeSet::from(Family::ALL));
    let first = routing.slice_written(&slice(&V4, V4.terminating, LEAVING), at(3));
    assert_eq!(first.relevant, BTreeSet::from([Family::V4]));
    let second = routing.slice_written(&slice(&V6, V6.terminating, LEAVING), at(4));
    assert_eq!(second.relevant, BTreeSet::from([Family::V6]));
    routing
}

fn web_lb() -> Service {
    Service { name: ServiceName("web-lb".into()), version: ResourceVersion("243".into()), ..service("web-lb") }
}

#[test]
fn a_captured_deletion_withdraws_each_family_with_its_own_slice() {
    let routing = drained(web_lb());
    let states: Vec<_> = routing.routes().map(|route| (route.family, route.state)).collect();
    let since = |nanos| State::Withdrawn { since: Monotonic::from_nanos(nanos) };
    assert_eq!(states, [(Family::V4, since(3)), (Family::V6, since(4))]);
}

/// The pod is the only one of its node: the node's own proxy still sends it what comes from outside.
#[test]
fn a_captured_deletion_under_local_leaves_the_fallback_until_the_pod_does_not_serve() {
    let mut routing =
        drained(Service { external: TrafficPolicy::Local, health_check_node_port: Some(30_660), ..web_lb() });
    assert!(routing.routes().all(|route| route.state == State::Routed));
    assert_eq!(routing.health_check_node_ports().into_values().collect::<Vec<_>>(), [30_660]);
    routing.slice_written(&slice(&V4, "530", DEAD), Monotonic::from_nanos(5));
    let withdrawn: Vec<_> =
        routing.routes().filter(|route| !route.state.is_routed()).map(|route| route.family).collect();
    assert_eq!(withdrawn, [Family::V4]);
}
