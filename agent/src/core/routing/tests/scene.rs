//! Slices, Services and a `Routing` in few words. The pod is 10.0.0.1 on the node `here`; the peers below 10 are on the
//! same node, the others on `there`.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use super::super::{Changes, Routing, State};
use crate::core::{
    clock::Monotonic,
    cluster::{
        Endpoint, NodeName, PortName, ResourceVersion, Service, ServiceName, ServiceProxy, Slice, SliceName, SlicePort,
        TrafficPolicy, Transport,
    },
    listener::Family,
};

/// `ready`, `serving`, `terminating`.
pub(super) type Conditions = [bool; 3];

pub(super) const READY: Conditions = [true, true, false];
/// Terminating, and passing its probes: kube-proxy's fallback.
pub(super) const LEAVING: Conditions = [false, true, true];
/// Terminating, and failing its probes.
pub(super) const DEAD: Conditions = [false, false, true];
/// Failing its probes.
pub(super) const UNREADY: Conditions = [false, false, false];

pub(super) const POD: u8 = 1;
/// On the pod's node.
pub(super) const NEAR: u8 = 2;
/// On another node.
pub(super) const FAR: u8 = 20;

#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) routing: Routing,
    /// One millisecond later with each event.
    pub(super) now: Monotonic,
    pub(super) versions: u64,
}

impl Scene {
    /// Nothing listed yet.
    pub(super) fn blank() -> Self {
        let routing = Routing::new(BTreeSet::from([address(POD)]), NodeName("here".into()));
        Self { routing, now: Monotonic::from_nanos(0), versions: 0 }
    }

    /// The first lists have completed: one Service with both policies `Cluster`, and these slices of it.
    pub(super) fn listed(slices: &[(&str, &[(u8, Conditions)])]) -> Self {
        Self::listed_with(service("web"), slices)
    }

    pub(super) fn listed_with(service: Service, slices: &[(&str, &[(u8, Conditions)])]) -> Self {
        let mut scene = Self::blank();
        let at = scene.tick();
        scene.routing.services_listed(vec![service], at);
        scene.relist(slices);
        scene
    }

    pub(super) fn tick(&mut self) -> Monotonic {
        self.now = self.now + Duration::from_millis(1);
        self.now
    }

    /// The slice's next version.
    pub(super) fn version(&mut self, name: &str, endpoints: &[(u8, Conditions)]) -> Slice {
        self.versions += 1;
        slice(name, self.versions, endpoints.iter().map(|(who, conditions)| endpoint(*who, *conditions)).collect())
    }

    pub(super) fn relist(&mut self, slices: &[(&str, &[(u8, Conditions)])]) -> Changes {
        let slices: Vec<_> = slices.iter().map(|(name, endpoints)| self.version(name, endpoints)).collect();
        let at = self.tick();
        self.routing.slices_listed(&slices, at)
    }

    /// Whether the write was a relevant change.
    pub(super) fn write(&mut self, name: &str, endpoints: &[(u8, Conditions)]) -> bool {
        let slice = self.version(name, endpoints);
        self.deliver(&slice)
    }

    pub(super) fn deliver(&mut self, slice: &Slice) -> bool {
        let at = self.tick();
        relevant(&self.routing.slice_written(slice, at))
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let at = self.tick();
        relevant(&self.routing.slice_removed(&SliceName(name.into()), at))
    }

    /// Of the port `http`.
    pub(super) fn state(&self) -> Option<State> {
        self.state_of("http")
    }

    pub(super) fn state_of(&self, port: &str) -> Option<State> {
        self.routing.routes().find(|route| route.port.name.0 == port).map(|route| route.state)
    }

    pub(super) fn is_withdrawn_now(&self) -> bool {
        self.state() == Some(State::Withdrawn { since: self.now })
    }

    pub(super) fn is_withdrawn(&self) -> bool {
        matches!(self.state(), Some(State::Withdrawn { .. }))
    }
}

pub(super) fn relevant(changes: &Changes) -> bool {
    changes.relevant.contains(&Family::V4)
}

pub(super) fn address(who: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, who])
}

pub(super) fn endpoint(who: u8, [ready, serving, terminating]: Conditions) -> Endpoint {
    Endpoint {
        address: address(who),
        addresses: BTreeSet::from([address(who)]),
        ready: Some(ready),
        serving: Some(serving),
        terminating: Some(terminating),
        node: Some(NodeName(if who < 10 { "here" } else { "there" }.into())),
    }
}

pub(super) fn slice(name: &str, version: u64, endpoints: Vec<Endpoint>) -> Slice {
    Slice {
        name: SliceName(name.into()),
        version: ResourceVersion(version.to_string()),
        service: ServiceName("web".into()),
        family: Family::V4,
        proxy: ServiceProxy::KubeProxy,
        ports: vec![port("http", 8080)],
        endpoints,
    }
}

pub(super) fn port(name: &str, number: u16) -> SlicePort {
    SlicePort { name: PortName(name.into()), transport: Transport::Tcp, number }
}

pub(super) fn service(name: &str) -> Service {
    Service {
        name: ServiceName(name.into()),
        version: ResourceVersion("1".into()),
        external: TrafficPolicy::Cluster,
        internal: TrafficPolicy::Cluster,
        proxy: ServiceProxy::KubeProxy,
        ports: "http 80/TCP http".into(),
        health_check_node_port: None,
    }
}

pub(super) fn local_service() -> Service {
    Service { external: TrafficPolicy::Local, health_check_node_port: Some(31_000), ..service("web") }
}
