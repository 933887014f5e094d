//! What the cluster says, as the core takes it in: names that cannot be mixed, and slices, Services, nodes and health
//! answers without anything of Kubernetes' own types.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use super::{
    clock::Monotonic,
    confirm::{FenceProgress, FenceReach, OperatingSystem},
    listener::Family,
    verdict::NotObserved,
};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// A node's name, which is also its object's.
    NodeName
);
name!(
    /// A Service of the pod's namespace.
    ServiceName
);
name!(
    /// An EndpointSlice of the pod's namespace.
    SliceName
);
name!(
    /// The name of a Service's port; empty for the unnamed one.
    PortName
);
name!(
    /// `metadata.resourceVersion`. Opaque: versions are compared for equality, and nothing else (Kubernetes API
    /// concepts, "Resource versions").
    ResourceVersion
);

/// One kept-open connection to one health server. Never used twice, and a later one has a greater number: the connection
/// is the process (C1), and what comes late over an older one says nothing of the newer one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// One watch of the cluster, for one drain. Never used twice: what an earlier one delivers late says nothing to a later
/// drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObservationId(pub u64);

/// One consistent read. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u64);

/// One request to the fence. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceRequest(pub u64);

/// A time stamp by a node's wall clock, in nanoseconds since 1970. Another clock than ours, and one that may step:
/// stamps are compared with each other for equality, and never with a [`Monotonic`] (C3). So it has no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeTime(pub i128);

/// One version of an EndpointSlice of one family (`addressType`). FQDN slices are left out where slices are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its name.
    pub name: SliceName,
    /// This version.
    pub version: ResourceVersion,
    /// Whose it is: label `kubernetes.io/service-name`.
    pub service: ServiceName,
    /// `addressType`.
    pub family: Family,
    /// Who makes it into routes.
    pub proxy: ServiceProxy,
    /// The ports that have a number; kube-proxy skips the others.
    pub ports: Vec<SlicePort>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// Who makes a Service and its slices into routes. kube-proxy's informers select what carries neither label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServiceProxy {
    /// Neither of the following: kube-proxy.
    KubeProxy,
    /// `service.kubernetes.io/headless`, or `clusterIP: None`: nobody. Clients look the addresses up in DNS and keep
    /// them as they like.
    Headless,
    /// `service.kubernetes.io/service-proxy-name`: another proxy, of which nothing is known here.
    Foreign,
}

/// A port of a slice: all its endpoints have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlicePort {
    /// Its name.
    pub name: PortName,
    /// Its protocol. kube-proxy joins Services and slices by name *and* protocol.
    pub transport: Transport,
    /// The target port.
    pub number: u16,
}

/// The protocol of a Service's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// TCP, also where a port names none.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// One endpoint of a slice. Conditions that are absent mean what the API says (W2): use the methods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its first address, which is all that kube-proxy looks at.
    pub address: IpAddr,
    /// All its addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// `conditions.ready`.
    pub ready: Option<bool>,
    /// `conditions.serving`.
    pub serving: Option<bool>,
    /// `conditions.terminating`.
    pub terminating: Option<bool>,
    /// `nodeName`.
    pub node: Option<NodeName>,
}

/// Which endpoints a node sends a Service's connections to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficPolicy {
    /// All of them; also where a Service names no policy.
    #[default]
    Cluster,
    /// Those on the node.
    Local,
}

/// A Service, as far as it matters to routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: ServiceName,
    /// This version.
    pub version: ResourceVersion,
    /// `externalTrafficPolicy`.
    pub external: TrafficPolicy,
    /// `internalTrafficPolicy`.
    pub internal: TrafficPolicy,
    /// Who makes it into routes.
    pub proxy: ServiceProxy,
    /// The ports as (name, port, protocol, targetPort, nodePort), in one text: compared for equality only (C10).
    pub ports: String,
    /// `healthCheckNodePort`; `None` where it has none.
    pub health_check_node_port: Option<u16>,
}

/// What a node's health server answered, or that it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// Which node.
    pub node: NodeName,
    /// Over which connection.
    pub connection: ConnectionId,
    /// When the request was sent.
    pub sent_at: Monotonic,
    /// When this was known.
    pub received_at: Monotonic,
    /// What came of it.
    pub outcome: HealthOutcome,
}

/// Whether the core has a use for a node's next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None. Its connection is to stay open all the same, as it stands for the process (C1).
    No,
    /// It has.
    Yes {
        /// Since when: the last relevant change, or the drain's start.
        since: Monotonic,
        /// From when on an answer counts for more than one before, if that is known.
        due: Option<Monotonic>,
    },
}

/// What came of a request to a node's health server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthOutcome {
    /// An answer with a body that has `status`, whatever the status code (C2).
    Status(HealthStatus),
    /// An answer without `status.<family>`: another proxy, or a kube-proxy that has just started; in words.
    NoStatus(String),
    /// Nobody listens.
    Refused,
    /// No answer within the time-out. The connection stands.
    TimedOut,
    /// The connection broke: the process may be another now (C1).
    Broken,
}

/// What a Service's `healthCheckNodePort` answered on our own node, or that it did not (E6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalEndpointsReport {
    /// Of which Service.
    pub service: ServiceName,
    /// Over which connection.
    pub connection: ConnectionId,
    /// When the request was sent.
    pub sent_at: Monotonic,
    /// When this was known.
    pub received_at: Monotonic,
    /// What came of it.
    pub outcome: LocalEndpointsOutcome,
}

/// What came of a request to a `healthCheckNodePort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalEndpointsOutcome {
    /// That many endpoints of the Service are on this node and ready (`localEndpoints` of the body), whatever the status
    /// code.
    Endpoints(u64),
    /// No answer within the time-out, or one that cannot be read. The connection stands.
    Unknown,
    /// Nobody listens, or the connection broke: the process may be another now.
    Broken,
}

/// `status` of a kube-proxy's `/livez` or `/healthz` (Kubernetes 1.33 and newer, `proxy_health.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthStatus {
    /// IPv4's part.
    pub v4: Option<FamilyHealth>,
    /// IPv6's part.
    pub v6: Option<FamilyHealth>,
}

/// One family's part of [`HealthStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyHealth {
    /// When a sync last ended, or the process started, by the node's clock.
    pub last_updated: NodeTime,
    /// No change has been pending for longer than the node's health time-out.
    pub healthy: bool,
}

/// Everything that the cluster can tell the core. List and watch begin with the hook's call and end with the drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// A list of the slices has completed: the first, or one after a gap in the watch.
    SlicesListed(Vec<Slice>),
    /// A slice was created or has a new version.
    SliceWritten(Slice),
    /// A slice was deleted.
    SliceRemoved(SliceName),
    /// Slices cannot be read, and why: there is no way to the API server, it does not let the agent, or it has never
    /// answered this agent. What was known of them still holds; where nothing was, nothing can be.
    SlicesUnreadable(String),
    /// W8: the ways to the pod that its own object shows, or that they are not known. In place of what was told before.
    PodPaths(BTreeSet<NotObserved>),
    /// A list of the Services has completed.
    ServicesListed(Vec<Service>),
    /// A Service was created or has a new version.
    ServiceWritten(Service),
    /// A Service was deleted.
    ServiceRemoved(ServiceName),
    /// Services cannot be read, and why.
    ServicesUnreadable(String),
    /// A list of the nodes has completed.
    NodesListed(Vec<Node>),
    /// A node joined, or something new is known of it.
    NodeAdded(Node),
    /// A Node object was deleted.
    NodeRemoved(NodeName),
    /// Nodes cannot be read, and why.
    NodesUnreadable(String),
    /// A node's health server was asked.
    Health(HealthReport),
    /// This node's `healthCheckNodePort` of a Service was asked.
    LocalEndpoints(LocalEndpointsReport),
    /// The fence saw its markers at a node.
    Fence(FenceProgress),
    /// The fence tells which nodes there are, by a consistent read that began at `as_of` or later.
    FenceNodes {
        /// All of them.
        nodes: Vec<Node>,
        /// By our clock.
        as_of: Monotonic,
    },
    /// The fence tells whether a node's rules can show it anything.
    FenceReach {
        /// Which node.
        node: NodeName,
        /// Over which family.
        family: Family,
        /// Whether.
        reach: FenceReach,
    },
    /// The fence answers.
    FenceAnswers,
    /// It does not, or refuses; in words.
    FenceFails(String),
    /// C14: a counting SYN provably came through a node.
    AttemptThrough {
        /// Which.
        node: NodeName,
        /// Over which family.
        family: Family,
        /// When it came.
        at: Monotonic,
    },
    /// What came of a consistent read.
    ConsistentRead(ReadId, ReadOutcome),
}

/// A node, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its operating system.
    pub system: OperatingSystem,
}

/// What came of a consistent read (no `resourceVersion`: at least as new as its beginning).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// It shows this.
    Shows(Snapshot),
    /// A time-out, 5xx or 429: it is tried again; in words.
    Failed(String),
    /// The API is not configured, or does not let the agent read: it is done without; in words.
    Forbidden(String),
}

/// What a consistent read shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The slices and their versions.
    pub slices: BTreeMap<SliceName, ResourceVersion>,
    /// The Services and their versions.
    pub services: BTreeMap<ServiceName, ResourceVersion>,
    /// The nodes; `None` where a fence keeps their list.
    pub nodes: Option<Vec<Node>>,
}

impl Endpoint {
    /// W2: an absent `ready` means true.
    pub fn is_ready(&self) -> bool {
        self.ready.unwrap_or(true)
    }

    /// W2: an absent `serving` means true.
    pub fn is_serving(&self) -> bool {
        self.serving.unwrap_or(true)
    }

    /// W2: an absent `terminating` means false.
    pub fn is_terminating(&self) -> bool {
        self.terminating.unwrap_or(false)
    }

    /// W1: it is the pod's if one of its addresses is.
    pub fn is_the_pods(&self, pod: &BTreeSet<IpAddr>) -> bool {
        !self.addresses.is_disjoint(pod)
    }
}

impl HealthStatus {
    /// One family's part.
    pub fn of(&self, family: Family) -> Option<FamilyHealth> {
        match family {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }
}
