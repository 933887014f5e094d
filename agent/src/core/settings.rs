//! What the operator chose.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use super::{cluster::NodeName, confirm::Bounds, event::Depth, listener::Port, phase::FailAfter};

/// The drain's times and limits. Validated where they are read: `quiet_period` and `min_wait` are at most `max_wait`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which ports are watched.
    pub watch: Watch,
    /// E2: how long no attempt may come.
    pub quiet_period: Duration,
    /// E2a: how long quiet lasts after a SYN that was dropped unanswered.
    pub retry_wait: Duration,
    /// E1: no drain ends earlier.
    pub min_wait: Duration,
    /// S1: no drain ends later.
    pub max_wait: Duration,
    /// E3: how long a handshake under way can hold the end.
    pub handshake_grace: Duration,
    /// E4: at most this many established connections at the end; `None`: any number.
    pub exit_at_connections: Option<u64>,
    /// E5, E6: what is to be known of the cluster; `None`: routing is not watched.
    pub routing: Option<RoutingSettings>,
    /// Why it is not, where it is not.
    pub no_routing: NoRouting,
    /// S5: how long after the hook's call a sign may come that the pod is terminating; `None`: the caller is believed.
    pub restart_guard: Option<Duration>,
    /// When the server in the pod is to fail readiness; `None`: it is told nothing.
    pub fail_after: Option<FailAfter>,
    /// S7: how long the agent stays past the bound when it was asked to stop.
    pub stop_reserve: Duration,
    /// S7: how long it stays after a drain's last listener has closed, to count what still comes.
    pub linger: Duration,
}

/// How the cluster is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingSettings {
    /// The pod's addresses.
    pub pod: BTreeSet<IpAddr>,
    /// The pod's node.
    pub node: NodeName,
    /// What evidence may assume.
    pub bounds: Bounds,
    /// E6: how long a load balancer may take to find this node failing.
    pub load_balancer_window: Duration,
    /// C9: how long the watch has to deliver what a consistent read shows.
    pub poll_timeout: Duration,
    /// Whether there is a fence to ask.
    pub fence: bool,
    /// W8: paths that are not observed and that the operator acknowledges: `headless/web`.
    pub accept: BTreeSet<String>,
    /// Above this many nodes, without a fence, nothing is claimed of them.
    pub max_nodes: u64,
}

/// Why routing is not watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoRouting {
    /// The operator said so.
    #[default]
    Off,
    /// This is no pod of a cluster.
    NoCluster,
}

/// Which ports are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Every listener that can be reached from outside the pod, but for these ports.
    Auto {
        /// Ports that are left out: the agent's own among them.
        exclude: Vec<Port>,
    },
    /// These, whether or not something listens on them.
    Ports(Vec<Port>),
}

impl Settings {
    /// How deep the socket table must be read before a drain can end.
    pub fn depth(&self) -> Depth {
        if self.exit_at_connections.is_some() { Depth::Connections } else { Depth::Handshakes }
    }
}

impl Watch {
    /// Whether a listener on `port` that can be reached from outside is to be watched.
    pub fn wants(&self, port: Port) -> bool {
        match self {
            Self::Auto { exclude } => !exclude.contains(&port),
            Self::Ports(ports) => ports.contains(&port),
        }
    }
}
