//! What can be set. The serialized default of [`Config`] is the list of all keys; nothing else names them.

use std::{
    net::{Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    duration,
    fence::Fence,
    mode::Mode,
    networks::{self, Network},
    place_of_file, ports,
    probes::Probes,
    proxy::{Proxy, Readiness},
    routing::{LoadBalancer, Pod, Routing},
    socket,
};
use crate::core::listener::Port;

/// Kubernetes' default `terminationGracePeriodSeconds`. `maxWait: auto` reckons with it until the pod's own has been read, and where that
/// cannot be.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// The agent's TCP port where nothing else is said.
pub const DEFAULT_PORT: u16 = 19480;

/// The agent's unix socket where nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/lastsyn/hook.sock";

/// The state file where nothing else is said.
pub const DEFAULT_STATE: &str = "/run/lastsyn/state.json";

/// The agent's whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Whether drains are held, or terminations only watched. Default `drain`.
    pub mode: Mode,
    /// What is watched.
    pub listeners: Listeners,
    /// When a drain ends.
    pub drain: Drain,
    /// What is done after it.
    pub after_end: AfterEnd,
    /// What is to be known of the cluster.
    pub routing: Routing,
    /// The fence's own settings, for `lastsyn fence`.
    pub fence: Fence,
    /// What load balancers need.
    pub load_balancer: LoadBalancer,
    /// Who this pod is.
    pub pod: Pod,
    /// What the server in the pod is told, and how.
    pub proxy: Proxy,
    /// When the pod fails readiness.
    pub readiness: Readiness,
    /// How SYNs are seen.
    pub sensor: Sensor,
    /// What status and verdict tell of clients.
    pub report: Report,
    /// Where the agent answers.
    pub server: Server,
    /// What is kept for an agent that comes after this one.
    pub state: State,
    /// What it logs.
    pub log: Log,
}

/// `listeners`: what is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listeners {
    /// The watched ports, of TCP, and of QUIC as `443/udp`. Default `auto`, which finds those of TCP alone. A port that is missing here can still get connections after the drain's
    /// end: the verdict speaks of the watched ones alone.
    pub watch: Watch,
    /// Ports that `auto` leaves out. Default none. The agent's own port is left out by itself.
    #[serde(deserialize_with = "ports::deserialize")]
    pub exclude: Vec<Port>,
    /// Ports at which kubelet probes this pod (`httpGet`, `tcpSocket`, `grpc`), at most 32: a SYN of kubelet's own to one of
    /// them does not hold a drain. Default `auto`. Kubelet is known by its control group, which the agent learns when
    /// kubelet asks the agent itself; until then, and by any other sensor than `tcx` and `clsact`, probes count as clients,
    /// and one that comes more often than the quiet period holds every drain to its bound.
    pub probes: Probes,
    /// Networks whose SYNs do not hold a drain, such as those of a load balancer's health checkers. Default none; at most
    /// 256 of each family. They are counted apart, and every verdict tells how many there were: a client in one of them is
    /// not waited for.
    #[serde(deserialize_with = "networks::deserialize")]
    pub ignore_sources: Vec<Network>,
}

/// Which ports are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// Every listener found that is bound to more than loopback.
    #[default]
    Auto,
    /// These, whether something listens there or not. At least one, each once.
    Ports(Vec<Port>),
}

/// `drain`: when a drain ends. Durations are from 0s to 30 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drain {
    /// No attempt that counts for this long, on every listener and family, is quiet. More than 0s, at most the bound;
    /// default 2s. Every drain lasts at least this long; a pause between two connections that is longer ends it early.
    #[serde(with = "duration")]
    pub quiet_period: Duration,
    /// After a SYN that was dropped unanswered the drain lasts at least this much longer, as its client tries again
    /// after 1, 2 and 4 s, here. Default 8s. With 0s such a client is lost.
    #[serde(with = "duration")]
    pub retry_wait: Duration,
    /// No drain ends before this, counted from the hook's call. At most the bound; default 0s.
    #[serde(with = "duration")]
    pub min_wait: Duration,
    /// The bound: no drain lasts longer, counted from the hook's call. Default `auto`. See [`Drain::bound_within`].
    pub max_wait: MaxWait,
    /// What `maxWait: auto` leaves of the grace period for the server's own stop, and how long the agent stays after
    /// the bound. Less than the grace period with `auto`; default 10s. Too little, and kubelet kills the server before it has
    /// finished its connections.
    #[serde(with = "duration")]
    pub stop_reserve: Duration,
    /// How long a handshake under way holds the drain, counted from when it was first seen. Default 3s. A longer one
    /// waits for clients that never answer; with 0s a handshake that a closing listener resets is lost.
    #[serde(with = "duration")]
    pub handshake_grace: Duration,
    /// The drain lasts until no more than this many connections are established on the watched listeners. Default
    /// `null`: connections do not hold it.
    pub exit_at_connections: Option<u32>,
    /// How long after the hook's call a sign may come that the pod is terminating: SIGTERM, the agent's own preStop hook
    /// (`lastsyn drain --mark`), a slice, or the pod's own object. A hook is also called for a container that is only
    /// restarted, so that nobody tells the server in the pod anything before such a sign, or before this has passed; after
    /// it, a drain of a pod that is known not to terminate ends `not-terminating`. Default 5s; with 0s the caller is
    /// believed.
    #[serde(with = "duration")]
    pub restart_guard: Duration,
}

/// The bound of a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MaxWait {
    /// The pod's `terminationGracePeriodSeconds`, less `stopReserve`. See [`Drain::bound_within`]. Kubernetes' default, 30 s,
    /// is taken where the API server does not let the agent read its own pod.
    #[default]
    Auto,
    /// This long.
    Fixed(Duration),
}

/// `afterEnd`: what is done after a drain. Durations are from 0s to 30 days.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AfterEnd {
    /// How long an agent that is asked to stop stays after the last listener of a drain has closed, to count the SYNs that
    /// still come: nobody answers them any more. Default 0s. It delays the pod's end by as much, and never beyond the
    /// bound and `drain.stopReserve`.
    #[serde(with = "duration")]
    pub linger: Duration,
}

/// `sensor`: how SYNs are seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sensor {
    /// Default `auto`.
    pub strategy: SensorStrategy,
    /// Whose network the agent is in. Default `auto`. With `pod` for a pod that has `hostNetwork: true`, SYNs of others
    /// hold its drains, and verdicts claim more than was seen.
    pub network: SensorNetwork,
    /// Put the program back where another takes it away. Default true. With false the sensor stays blind from then on,
    /// and every drain lasts to its bound or ends `unverified`.
    pub reattach: bool,
}

/// How SYNs are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SensorStrategy {
    /// The best that the kernel and the agent's rights allow.
    #[default]
    Auto,
    /// An eBPF program at TCX ingress (Linux 6.6), or a refusal to start.
    Tcx,
    /// An eBPF program on the pod's control group (version 2), or a refusal to start.
    Cgroup,
    /// The same program as a filter of the older traffic control, or a refusal to start.
    Clsact,
    /// A packet socket with a classic filter, or a refusal to start.
    Packet,
    /// The kernel's TCP counters: coarse, and never enough for the reason `quiet`.
    Counters,
}

/// Whose network the agent is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SensorNetwork {
    /// The node's, if it is the machine's first network namespace. A node that is itself a container has another: then say
    /// `node`.
    #[default]
    Auto,
    /// The pod's own.
    Pod,
    /// The node's: the pod has `hostNetwork: true`.
    Node,
}

/// `report`: what status and verdict tell of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Report {
    /// Whether it is kept, and how it is told, who sends SYNs while a drain runs. Default `masked`.
    pub sources: ReportSources,
    /// Whether a drain's beginning and end are written as Events on the pod (`events.k8s.io/v1`). Default `false`: it takes a right of
    /// its own, to create events. Nothing depends on it.
    pub events: bool,
}

/// How it is told who sends SYNs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportSources {
    /// Nodes and pods by their addresses; of those outside the cluster only the network, of 24 bits of IPv4 and 48 of IPv6.
    #[default]
    Masked,
    /// IPv4 by its address, IPv6 by its network of 64 bits: they are clients' own, and get into the log.
    Full,
    /// Nobody is told of, and none kept. A SYN then contradicts no node's confirmation (C14).
    Off,
}

/// `server`: where the agent answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Server {
    /// Address and port of the HTTP server. Default `[::]:19480`, which is IPv4 too. `lastsyn drain` looks there.
    pub address: SocketAddr,
    /// A unix socket with the same answers, at most 107 bytes; `""` is none. Default `/run/lastsyn/hook.sock`.
    #[serde(with = "socket")]
    pub socket: Option<PathBuf>,
    /// Who may call the hook over HTTP (`/drain`), beside the unix socket. Default `pod`: over loopback and the pod's own
    /// addresses.
    pub hook_from: HookFrom,
}

/// Who may call the hook over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookFrom {
    /// The pod itself.
    #[default]
    Pod,
    /// Also processes of the pod's node, kubelet with its `httpGet` hook among them, and pods with `hostNetwork` there. Only
    /// the sensors `tcx` and `clsact` know them.
    Node,
}

/// `state`: what is kept for an agent that comes after this one in the same pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct State {
    /// The file with the courses of the last drains, at most 1 MiB; `""` is none. Default `/run/lastsyn/state.json`. It is to be on a
    /// volume that outlives the agent's container, and not the pod; without such a volume the courses go with the agent. Nothing
    /// is decided by it.
    #[serde(with = "place_of_file")]
    pub path: Option<PathBuf>,
}

/// `log`: what the agent logs, on standard error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Log {
    /// `trace`, `debug`, `info`, `warn`, `error` or `off`, also per target: `info,lastsyn::sensor=debug`. Default
    /// `info`. It can be changed while the agent runs (`PUT /v1/log-level`).
    #[serde(deserialize_with = "level")]
    pub level: String,
    /// Default `json`.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

// === impl Drain ===

impl Default for Drain {
    fn default() -> Self {
        Self {
            quiet_period: Duration::from_secs(2),
            retry_wait: Duration::from_secs(8),
            min_wait: Duration::ZERO,
            max_wait: MaxWait::Auto,
            stop_reserve: Duration::from_secs(10),
            handshake_grace: Duration::from_secs(3),
            exit_at_connections: None,
            restart_guard: Duration::from_secs(5),
        }
    }
}

// === impl MaxWait ===

impl Serialize for MaxWait {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(bound) => duration::serialize(bound, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MaxWait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = MaxWait;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("auto, or a duration such as 25s")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MaxWait, E> {
                match text.trim() {
                    "auto" => Ok(MaxWait::Auto),
                    text => duration::Visitor.visit_str(text).map(MaxWait::Fixed),
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<MaxWait, E> {
                duration::Visitor.visit_u64(number).map(MaxWait::Fixed)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<MaxWait, E> {
                duration::Visitor.visit_i64(number).map(MaxWait::Fixed)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<MaxWait, E> {
                duration::Visitor.visit_f64(number).map(MaxWait::Fixed)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

// === impl Sensor, Server, State, Log ===

impl Default for Sensor {
    fn default() -> Self {
        Self { strategy: SensorStrategy::Auto, network: SensorNetwork::Auto, reattach: true }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            address: (Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into(),
            socket: Some(DEFAULT_SOCKET.into()),
            hook_from: HookFrom::Pod,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self { path: Some(DEFAULT_STATE.into()) }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Json }
    }
}

fn level<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::telemetry::log::check(&text).map_err(de::Error::custom)?;
    Ok(text)
}
