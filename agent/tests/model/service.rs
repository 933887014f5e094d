//! The pod's Service: what its slices list at the start, what may be written to them, and what rules made of them do.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr},
};

use lastsyn::core::{
    cluster::{
        Endpoint, NodeName, PortName, ResourceVersion, Service as ServiceObject, ServiceName, ServiceProxy, Slice,
        SliceName, SlicePort, TrafficPolicy, Transport,
    },
    listener::Family,
    routing::Routing,
};

use crate::api::{Content, Log, Object, Pod, Value, View};

/// The Service of one case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// What its slices list at the start, with everybody.
    pub(crate) start: [Content; 3],
    pub(crate) writes: Writes,
    /// Whether a slice has the Service's second port, which pods of a newer version may lack. All have the first.
    pub(crate) second_port: [bool; 3],
    /// A policy is `Local`.
    pub(crate) local: bool,
}

/// What may be written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writes {
    /// Any of these, in any order.
    Any(&'static [(usize, Content)]),
    /// These, in this order.
    InOrder(&'static [(usize, Content)]),
}

/// One address of whoever a slice can list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Pod,
    Near,
    Far,
}

const POD: Content = Content::pod(Pod::Ready);
const NEAR: Content = Content::EMPTY.near(true);

impl Service {
    /// The pod in slice A and another endpoint in slice B, and every write that there can be.
    pub(crate) const TWO_ENDPOINTS: Self = Self {
        start: [POD, NEAR, Content::EMPTY],
        writes: Writes::Any(&[
            (0, Content::pod(Pod::Serving)),
            (0, Content::EMPTY),
            (0, POD),
            (1, Content::EMPTY.near(false)),
            (1, NEAR),
        ]),
        second_port: [false; 3],
        local: false,
    };

    /// The objects after the first `version` writes.
    pub(crate) fn at(&self, log: &Log, version: usize) -> View {
        let mut view = View { slices: self.start, marker: 0 };
        log.0.iter().take(version).for_each(|write| view.apply(write.value));
        view
    }

    /// What can be written next.
    pub(crate) fn next(&self, log: &Log) -> Vec<Value> {
        let newest = self.at(log, log.len());
        let value = |&(slice, content): &(usize, Content)| Value::Slice(slice, content);
        match self.writes {
            Writes::Any(all) => all.iter().filter(|(slice, to)| newest.slices[*slice] != *to).map(value).collect(),
            Writes::InOrder(all) => all.get(log.of_the_service()).map(value).into_iter().collect(),
        }
    }

    /// Whether rules made of these may send new connections to the pod. Of several copies of one address kube-proxy may
    /// take any.
    pub(crate) fn routes(&self, view: &View) -> bool {
        let with_the_second = || (0..3).filter(|slice| self.second_port[*slice]).map(|slice| view.slices[slice]);
        self.routes_a_port(&view.slices) || self.routes_a_port(&with_the_second().collect::<Vec<_>>())
    }

    fn routes_a_port(&self, slices: &[Content]) -> bool {
        let pods = || slices.iter().filter_map(|slice| slice.pod);
        let unready = |ready: fn(&Content) -> Option<bool>| {
            // Every copy ready: ready. One copy not ready: it may be the one that is taken.
            let mut copies = slices.iter().filter_map(ready).peekable();
            copies.peek().is_none() || !copies.all(|ready| ready)
        };
        let (no_near, no_far) = (unready(|slice| slice.near), unready(|slice| slice.far));
        let rests = no_near && (no_far || self.local);
        pods().any(|pod| pod == Pod::Ready || (pod == Pod::Serving && rests))
    }

    /// The core's [`Routing`] of the agent, when it has listed what there is at the start.
    pub(crate) fn routing(&self) -> Routing {
        let mut routing = Routing::new(BTreeSet::from([address(Who::Pod)]), node("here"));
        let start = lastsyn::core::clock::Monotonic::default();
        routing.services_listed(vec![self.object()], start);
        routing.slices_listed(&self.slices(&Log::default(), 0), start);
        routing
    }

    /// All slices after the first `version` writes, as a list shows them.
    pub(crate) fn slices(&self, log: &Log, version: usize) -> Vec<Slice> {
        let listed = self.at(log, version).slices.into_iter().enumerate();
        let there = listed.filter(|(_, content)| *content != Content::EMPTY);
        there.map(|(slice, content)| self.slice(slice, content, log.last_of(slice_object(slice), version))).collect()
    }

    /// One version of a slice.
    pub(crate) fn slice(&self, slice: usize, content: Content, version: usize) -> Slice {
        let ports = [Some(("http", 8080)), self.second_port[slice].then_some(("admin", 9090))];
        let port =
            |(name, number): (&str, u16)| SlicePort { name: PortName(name.into()), transport: Transport::Tcp, number };
        Slice {
            name: name(slice),
            version: ResourceVersion(version.to_string()),
            service: ServiceName("web".into()),
            family: Family::V4,
            proxy: ServiceProxy::KubeProxy,
            ports: ports.into_iter().flatten().map(port).collect(),
            endpoints: endpoints(content),
        }
    }

    fn object(&self) -> ServiceObject {
        ServiceObject {
            name: ServiceName("web".into()),
            version: ResourceVersion("1".into()),
            external: if self.local { TrafficPolicy::Local } else { TrafficPolicy::Cluster },
            internal: TrafficPolicy::Cluster,
            proxy: ServiceProxy::KubeProxy,
            ports: String::new(),
            health_check_node_port: None,
        }
    }
}

/// A slice's name.
pub(crate) fn name(slice: usize) -> SliceName {
    SliceName(slice_object(slice).to_string())
}

fn slice_object(slice: usize) -> Object {
    Object::Slice(slice)
}

fn node(name: &str) -> NodeName {
    NodeName(name.to_owned())
}

fn address(who: Who) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, who as u8))
}

fn endpoints(content: Content) -> Vec<Endpoint> {
    let pod = content.pod.map(|pod| match pod {
        Pod::Ready => endpoint(Who::Pod, "here", [true, true, false]),
        Pod::Serving => endpoint(Who::Pod, "here", [false, true, true]),
        Pod::Dead => endpoint(Who::Pod, "here", [false, false, true]),
    });
    let near = content.near.map(|ready| endpoint(Who::Near, "here", [ready, ready, false]));
    let far = content.far.map(|ready| endpoint(Who::Far, "there", [ready, ready, false]));
    [pod, near, far].into_iter().flatten().collect()
}

fn endpoint(who: Who, at: &str, [ready, serving, terminating]: [bool; 3]) -> Endpoint {
    Endpoint {
        address: address(who),
        addresses: BTreeSet::from([address(who)]),
        ready: Some(ready),
        serving: Some(serving),
        terminating: Some(terminating),
        node: Some(node(at)),
    }
}
