//! `routing`, `loadBalancer` and `pod`: what is to be known of the cluster, and who this pod is.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use super::{addresses, duration, fence::FenceUrl};

/// `routing`: what is to be known of the cluster before a drain ends. Durations are from 0s to 30 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Routing {
    /// Watch the cluster while a drain runs. Default true. With false a drain ends `quiet` at best: clients that pause for
    /// longer than the quiet period while a node lags are lost.
    pub enabled: bool,
    /// kube-proxy's health port on every node. Default 10256; 0 asks no node, and drains end `unverified` at best.
    pub kube_proxy_healthz_port: u16,
    /// The bound that `syncs` and `settled` assume on how late a node hears of a change. Default 2s. Longer is safer, and
    /// every drain is as much slower.
    #[serde(with = "duration")]
    pub watch_lag: Duration,
    /// The bound that `settled` assumes on one sync of a node. Default 2s. `sync_proxy_rules_duration_seconds` tells.
    #[serde(with = "duration")]
    pub sync_time: Duration,
    /// kube-proxy's `minSyncPeriod`. Default 1s, which is also its own.
    #[serde(with = "duration")]
    pub min_sync: Duration,
    /// Paths that are not observed and that are acknowledged by this: `[headless/web, hostPort/8080]`. Default none. The
    /// verdict does not name them any more, and claims as much as without them.
    pub accept: BTreeSet<String>,
    /// A label selector of nodes that are neither asked nor awaited, such as those without kube-proxy. Default none.
    pub ignore_nodes: String,
    /// Above this many nodes none is asked, and drains end `unverified` at best. Default 500.
    pub max_nodes: u64,
    /// The cluster's fence, `http://lastsyn-fence.lastsyn-system:19481`, or `off`. Default `off`. With it a drain can end
    /// `routed-away`, and the agent needs neither the list of nodes nor a way to them. One that cannot be reached ends no
    /// drain earlier.
    pub fence: FenceUrl,
    /// Who tells of slices, Services and the pod. Default `api`.
    pub source: RoutingSource,
    /// How nodes are asked.
    pub poll: Poll,
}

/// Who tells of slices, Services and the pod's own object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoutingSource {
    /// The API server, to the pod's service account.
    #[default]
    Api,
    /// The fence, which knows the pod by its address: the pod needs no token. It needs `routing.fence`, `pod.name` and
    /// `pod.namespace`.
    Fence,
}

/// `routing.poll`: how nodes are asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Poll {
    /// The time between a node's answer and the next request, at the least. More than 0s; default 250ms.
    #[serde(with = "duration")]
    pub interval: Duration,
    /// For how long a connection and an answer are waited for, and a watch may be behind a consistent read. More than 0s;
    /// default 2s.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The most requests a second to all nodes together. At least 1; default 200. With more nodes than a quarter of it
    /// each is asked less often than `interval` says.
    pub max_rate: u32,
}

/// `loadBalancer`: what load balancers in front of the nodes need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadBalancer {
    /// How long one may take to find a node failing by its `healthCheckNodePort`, and to act on it: its interval times its
    /// threshold, and some more. Default 0s. Only Services with such a port wait for it.
    #[serde(with = "duration")]
    pub window: Duration,
}

/// `pod`: who this is, by the downward API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// `metadata.name`. Without it the pod's own object cannot be read.
    #[serde(deserialize_with = "addresses::name")]
    pub name: String,
    /// `metadata.namespace`. Default that of the service account.
    #[serde(deserialize_with = "addresses::name")]
    pub namespace: String,
    /// `metadata.uid`. Without it a pod of the same name that has replaced this one is taken for it.
    #[serde(deserialize_with = "addresses::name")]
    pub uid: String,
    /// `status.podIPs`. Default the addresses of the network namespace, link-local ones aside.
    #[serde(deserialize_with = "addresses::deserialize")]
    pub ips: Vec<IpAddr>,
    /// `spec.nodeName`. Without it nothing is known to be on the pod's node, and a Service with a `Local` policy is taken
    /// to route to the pod until that is gone from its slices.
    #[serde(deserialize_with = "addresses::name")]
    pub node_name: String,
    /// `status.hostIPs`: where the node's `healthCheckNodePort` is asked.
    #[serde(deserialize_with = "addresses::deserialize")]
    pub host_ips: Vec<IpAddr>,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            enabled: true,
            kube_proxy_healthz_port: 10256,
            watch_lag: Duration::from_secs(2),
            sync_time: Duration::from_secs(2),
            min_sync: Duration::from_secs(1),
            accept: BTreeSet::new(),
            ignore_nodes: String::new(),
            max_nodes: 500,
            fence: FenceUrl::default(),
            source: RoutingSource::default(),
            poll: Poll::default(),
        }
    }
}

impl Default for Poll {
    fn default() -> Self {
        Self { interval: Duration::from_millis(250), timeout: Duration::from_secs(2), max_rate: 200 }
    }
}
