//! Where rules that are made of some view of the API send new connections: kube-proxy's `CategorizeEndpoints`
//! (`pkg/proxy/topology.go`) and its choice between copies of one endpoint (`endpointslicecache.go`).

use lastsyn::core::{cluster::TrafficPolicy, listener::Family};

use super::{
    api::{Api, Body, Content, Entry, MOST_SERVICES, ObjectId, Versions},
    chance::Chance,
    node::NodeId,
};

/// The pod that drains.
pub(super) const POD: u16 = 0;
/// Its node.
pub(super) const HOME: NodeId = NodeId(0);

/// What a sync takes at its start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    pub(super) slices: Versions,
    /// How many Service writes it has.
    pub(super) services: u32,
}

impl View {
    /// The same where the log ends earlier: after so many writes of slices and Services.
    pub(super) fn as_of(&self, api: &Api, [slices, services]: [u32; 2]) -> Self {
        let mut view = *self;
        for (object, version) in view.slices.iter_mut().enumerate().filter(|(_, version)| **version > slices) {
            *version = api.last_of(ObjectId(object), slices);
        }
        view.services = view.services.min(services);
        view
    }
}

/// How kube-proxy takes one of several copies of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// One that is not terminating, else any (1.36 and newer).
    PreferLive,
    /// Any: the order of a map.
    Any,
}

/// One endpoint of one Service port.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a condition of its own")]
struct Endpoint {
    pod: u16,
    number: u16,
    on_node: bool,
    ready: bool,
    serving: bool,
    terminating: bool,
}

/// Whether rules made of this view send some new connection to the pod, on this node and over this family.
pub(super) fn routes(
    api: &Api,
    view: &View,
    family: Family,
    node: NodeId,
    copies: Copies,
    chance: &mut Chance,
) -> bool {
    let policies = api.policies(view.services);
    (0..MOST_SERVICES).any(|service| {
        let Some(policy) = policies[service] else { return false };
        let local = [policy.external, policy.internal].contains(&TrafficPolicy::Local);
        let bodies = || bodies(api, view, service, family);
        if !bodies().any(|body| body.endpoints.iter().any(|entry| entry.pod == POD)) {
            return false;
        }
        let mut ports: Vec<u8> = bodies().flat_map(|body| body.ports.iter().map(|(name, _)| *name)).collect();
        ports.sort_unstable();
        ports.dedup();
        ports.into_iter().any(|port| {
            let endpoints = endpoints(bodies(), port, node, copies, chance);
            // Nodes' own traffic, and one of the two policies, always asks all endpoints.
            takes_pod(&endpoints, |_| true) || (local && takes_pod(&endpoints, |endpoint| endpoint.on_node))
        })
    })
}

/// How many endpoints of a Service are on a node and ready: what its `healthCheckNodePort` answers.
pub(super) fn ready_on_node(api: &Api, view: &View, service: usize, family: Family, node: NodeId) -> u64 {
    let entries = bodies(api, view, service, family).flat_map(|body| body.endpoints.iter());
    let mut ready: Vec<u16> =
        entries.filter(|entry| entry.node == node && entry.ready.unwrap_or(true)).map(|entry| entry.pod).collect();
    ready.sort_unstable();
    ready.dedup();
    ready.len() as u64
}

/// The slices of one Service and family in a view.
fn bodies<'a>(api: &'a Api, view: &'a View, service: usize, family: Family) -> impl Iterator<Item = &'a Body> {
    view.slices.iter().filter_map(move |version| match api.content(*version) {
        Some(Content::Slice(body)) if body.service == service && body.family == family => Some(&**body),
        _ => None,
    })
}

fn endpoints<'a>(
    bodies: impl Iterator<Item = &'a Body>,
    port: u8,
    node: NodeId,
    copies: Copies,
    chance: &mut Chance,
) -> Vec<Endpoint> {
    let mut all: Vec<Endpoint> = Vec::new();
    for body in bodies {
        for (_, number) in body.ports.iter().filter(|(name, _)| *name == port) {
            all.extend(body.endpoints.iter().map(|entry| endpoint(entry, *number, node)));
        }
    }
    all.sort_by_key(|endpoint| (endpoint.pod, endpoint.number));
    all.chunk_by(|one, other| (one.pod, one.number) == (other.pod, other.number))
        .map(|group| choose(group, copies, chance))
        .collect()
}

fn choose(group: &[Endpoint], copies: Copies, chance: &mut Chance) -> Endpoint {
    if let [only] = group {
        return *only;
    }
    let live = group.iter().filter(|endpoint| !endpoint.terminating).count();
    if copies == Copies::PreferLive && live > 0 {
        let chosen = chance.index(live);
        return group.iter().filter(|endpoint| !endpoint.terminating).nth(chosen).copied().unwrap_or(group[0]);
    }
    chance.pick(group)
}

fn endpoint(entry: &Entry, number: u16, node: NodeId) -> Endpoint {
    Endpoint {
        pod: entry.pod,
        number,
        on_node: entry.node == node,
        ready: entry.ready.unwrap_or(true),
        serving: entry.serving.unwrap_or(true),
        terminating: entry.terminating.unwrap_or(false),
    }
}

/// The ready endpoints that are asked, or where there is none, those that serve and terminate.
fn takes_pod(endpoints: &[Endpoint], asked: impl Fn(&Endpoint) -> bool) -> bool {
    let any_ready = endpoints.iter().any(|endpoint| asked(endpoint) && endpoint.ready);
    endpoints
        .iter()
        .filter(|endpoint| endpoint.pod == POD && asked(endpoint))
        .any(|pod| if any_ready { pod.ready } else { pod.serving && pod.terminating })
}
