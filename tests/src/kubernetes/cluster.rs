//! The whole: a control plane, three nodes, and what tests put into them.

use std::{
    net::Ipv4Addr,
    path::Path,
    sync::atomic::{AtomicU8, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use serde_json::json;

use super::{
    Access, Api, Endpoint, FenceRight, KubePod, Kubelet, Mode, Node, PodSpec, Right, RuleWriter, Service, ServiceSpec,
    Timing, WatchProxy,
    addresses::{API_PORT, CONTROL_PLANE_V4, node_v4},
    control_plane::{self, ControlPlane},
    endpoints, kubeconfig,
};
use crate::{Host, Lab, wait::await_condition};

/// For what a controller or a kube-proxy does in tens of milliseconds.
const SOON: Duration = Duration::from_secs(20);
/// Nodes of a cluster.
const NODES: u8 = 3;

/// How a cluster is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterConfig {
    /// The mode of every kube-proxy.
    pub mode: Mode,
    /// When they write.
    pub timing: Timing,
    /// Whether there is a fourth node with a real kubelet.
    pub kubelet: bool,
    /// Whether that kubelet has an image of Envoy, which is large.
    pub envoy: bool,
    /// The number, from 0, of a node whose kube-proxy sees the API server through a [`WatchProxy`].
    pub watch_proxy_on: Option<usize>,
    /// The number, from 0, of a node whose kube-proxy writes its rules through a [`RuleWriter`].
    pub rule_writer_on: Option<usize>,
}

/// A cluster that is up. Dropped, it is gone.
#[derive(Debug)]
pub struct Cluster {
    // In the order in which they are to go.
    kubelet: Option<Kubelet>,
    nodes: Vec<Node>,
    watch_proxy: Option<WatchProxy>,
    rule_writer: Option<RuleWriter>,
    services: AtomicU8,
    control_plane: ControlPlane,
    lab: Lab,
}

// === impl Cluster ===

impl Cluster {
    /// A cluster with the defaults of Kubernetes, in a mode.
    ///
    /// # Errors
    ///
    /// When a program is missing or does not come up; the message has what it wrote.
    pub fn up(mode: Mode) -> Result<Self> {
        Self::with(&ClusterConfig { mode, ..ClusterConfig::default() })
    }

    /// The same with other settings. It is up when every kube-proxy has written its rules.
    ///
    /// # Errors
    ///
    /// When a program is missing or does not come up; the message has what it wrote.
    pub fn with(config: &ClusterConfig) -> Result<Self> {
        let lab = Lab::new()?;
        let host = lab.host("control-plane")?;
        host.forward()?;
        // The nodes' wires carry the control plane's addresses, so they come first.
        let mut nodes = (1..=NODES + u8::from(config.kubelet))
            .map(|number| Node::new(&lab, &host, number, config.mode))
            .collect::<Result<Vec<_>>>()?;
        let control_plane = ControlPlane::start(host)?;
        for node in &nodes {
            node.register(&control_plane.api)?;
        }
        let (mut watch_proxy, mut rule_writer) = (None, None);
        for (index, node) in nodes.iter_mut().enumerate() {
            let server = if config.watch_proxy_on == Some(index) {
                let identity = write_kubeconfig(&control_plane, "watch-proxy", &control_plane::server_url())?;
                let proxy = WatchProxy::start(node.host(), Ipv4Addr::LOCALHOST, &identity)?;
                let server = proxy.url();
                watch_proxy = Some(proxy);
                server
            } else {
                control_plane::server_url()
            };
            let kubeconfig = write_kubeconfig(&control_plane, node.name(), &server)?;
            if config.rule_writer_on == Some(index) {
                rule_writer = Some(RuleWriter::install(&node.host().directory().join("rule-writer"))?);
            }
            let writer = rule_writer.as_ref().filter(|_| config.rule_writer_on == Some(index));
            node.start_proxy(config.timing, &kubeconfig, writer)?;
        }
        let services = AtomicU8::new(1);
        let mut cluster = Self { kubelet: None, nodes, watch_proxy, rule_writer, services, control_plane, lab };
        for node in &cluster.nodes {
            node.proxy().await_status(cluster.outside())?;
            node.await_rules()?;
        }
        if config.kubelet {
            cluster.start_kubelet(config.envoy)?;
        }
        Ok(cluster)
    }

    fn start_kubelet(&mut self, envoy: bool) -> Result<()> {
        // Pods find the API server by its Service, for which it makes no endpoints in the lab.
        self.api().post(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            &json!({
                "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
                "addressType": "IPv4",
                "ports": [{"name": "https", "port": API_PORT, "protocol": "TCP"}],
                "endpoints": [{"addresses": [CONTROL_PLANE_V4], "conditions": {"ready": true}}],
            }),
        )?;
        let path = self.lab.directory().join("kubelet.kubeconfig");
        let ControlPlane { api, authority, kubelet_identity, .. } = &self.control_plane;
        let kubeconfig = kubeconfig::write(&path, &control_plane::server_url(), authority, kubelet_identity)?;
        let kubelet = Kubelet::start(api, self.node(control_plane::KUBELET_NODE)?, authority, &kubeconfig, envoy)?;
        self.kubelet = Some(kubelet);
        Ok(())
    }

    /// The real kubelet of `node-d`, if it was asked for.
    ///
    /// # Errors
    ///
    /// When it was not.
    pub fn kubelet(&self) -> Result<&Kubelet> {
        self.kubelet.as_ref().context("the cluster was made without a kubelet")
    }

    /// The nodes, `node-a` first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node that has a name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn node(&self, name: &str) -> Result<&Node> {
        self.nodes.iter().find(|node| node.name() == name).with_context(|| format!("there is no node {name}"))
    }

    /// The API server's client.
    pub fn api(&self) -> &Api {
        &self.control_plane.api
    }

    /// The control plane's namespace, which reaches every node and pod and is no part of the pods' network: the outside.
    pub fn outside(&self) -> &Host {
        &self.control_plane.host
    }

    /// The file that lets a client of the [`outside`](Self::outside) do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.control_plane.kubeconfig
    }

    /// The certificate of the authority that the API server's is signed by.
    pub fn authority(&self) -> &Path {
        &self.control_plane.authority
    }

    /// The lab that it belongs to.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// What stands between one kube-proxy and the API server, if it was asked for.
    ///
    /// # Errors
    ///
    /// When it was not.
    pub fn watch_proxy(&self) -> Result<&WatchProxy> {
        self.watch_proxy.as_ref().context("the cluster was made without a watch proxy")
    }

    /// A client that is a `ServiceAccount`, with its rights and no others.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn api_as(&self, access: &Access) -> Result<Api> {
        Api::connect(self.outside(), &access.kubeconfig(&control_plane::server_url(), self.authority())?)
    }

    /// What an agent in a pod of a node, numbered from 0, has of the API server through a watch proxy on that node.
    ///
    /// # Errors
    ///
    /// When there is no such node, or nothing listens there.
    pub fn watched(&self, access: &Access, node: usize) -> Result<(Access, WatchProxy)> {
        let node = self.nodes.get(node).with_context(|| format!("there is no node {node}"))?;
        let identity = access.kubeconfig(&control_plane::server_url(), self.authority())?;
        let proxy = WatchProxy::start(node.host(), node_v4(node.number), &identity)?;
        Ok((access.through(&proxy.url())?, proxy))
    }

    /// What stands between one kube-proxy and its rules, if it was asked for.
    ///
    /// # Errors
    ///
    /// When it was not.
    pub fn rule_writer(&self) -> Result<&RuleWriter> {
        self.rule_writer.as_ref().context("the cluster was made without a rule writer")
    }

    /// Makes a pod on a node, numbered from 0. It is not ready yet.
    ///
    /// # Errors
    ///
    /// When there is no such node, or the API server does not take the pod.
    pub fn pod(&self, node: usize, spec: &PodSpec) -> Result<KubePod> {
        let node = self.nodes.get(node).with_context(|| format!("there is no node {node}"))?;
        KubePod::create(&self.lab, self.api(), node, spec).with_context(|| format!("no pod {}", spec.name))
    }

    /// Makes a Service.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn service(&self, spec: &ServiceSpec) -> Result<Service> {
        let number = self.services.fetch_add(1, Ordering::Relaxed);
        Service::create(self.api(), number, spec).with_context(|| format!("no Service {}", spec.name))
    }

    /// Makes a `ServiceAccount` that has some rights, for the agents of pods. Names are given once.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn access(&self, name: &str, rights: &[Right]) -> Result<Access> {
        Access::grant(self.api(), name, rights, self.lab.directory(), self.authority())
            .with_context(|| format!("no ServiceAccount {name}"))
    }

    /// What a `ServiceAccount` of the namespace `default` may ask that somebody else has made, with its rights. Asked for once.
    ///
    /// # Errors
    ///
    /// When there is none of this name.
    pub fn access_of_account(&self, name: &str) -> Result<Access> {
        Access::of_account(self.api(), name, self.lab.directory(), self.authority())
            .with_context(|| format!("no token of the ServiceAccount {name}"))
    }

    /// What a replica of the fence may ask of the API server, by a `ServiceAccount` of a name that is given once.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn fence_access(&self, name: &str) -> Result<Access> {
        self.fence_access_in("default", name, &FenceRight::DOOR)
    }

    /// The same for one that writes in a namespace, with some of the rights that it has everywhere.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn fence_access_in(&self, namespace: &str, name: &str, asks: &[FenceRight]) -> Result<Access> {
        Access::grant_fence(self.api(), (name, namespace), asks, self.lab.directory(), self.authority())
            .with_context(|| format!("no ServiceAccount {name}"))
    }

    /// What the slices of a Service say now.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub fn endpoints(&self, service: &str) -> Result<Vec<Endpoint>> {
        endpoints::of(self.api(), service)
    }

    /// Sends what goes from the outside to load balancers' addresses to a node, numbered from 0.
    ///
    /// # Errors
    ///
    /// When there is no such node.
    pub fn balance_to(&self, node: usize) -> Result<()> {
        let node = self.nodes.get(node).with_context(|| format!("there is no node {node}"))?;
        node.take_balancers(self.outside())
    }

    /// Waits until the rules of every node, or of none, send new connections to a pod's port.
    ///
    /// # Errors
    ///
    /// When they do not in time, or cannot be read.
    pub fn await_routes(&self, pod: &KubePod, port: u16, routed: bool) -> Result<()> {
        let look = |node: &Node| -> Result<bool> {
            for endpoint in pod.endpoints(port) {
                if node.routes_to(endpoint)? != routed {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let what = format!("{} {} in every node's rules", pod.name(), if routed { "present" } else { "absent" });
        thread::scope(|scope| {
            let waiting: Vec<_> = self
                .nodes
                .iter()
                .map(|node| {
                    let what = format!("{what}: {}", node.name());
                    scope.spawn(move || {
                        await_condition(&what, SOON, || {
                            look(node).map_or_else(|error| Some(Err(error)), |so| so.then_some(Ok(())))
                        })
                        .and_then(|outcome| outcome)
                    })
                })
                .collect();
            waiting
                .into_iter()
                .try_for_each(|waiting| waiting.join().unwrap_or_else(|_panic| Err(anyhow!("a look panicked"))))
        })
    }
}

fn write_kubeconfig(control_plane: &ControlPlane, name: &str, server: &str) -> Result<std::path::PathBuf> {
    let path = control_plane.host.directory().join(format!("{name}.kubeconfig"));
    kubeconfig::write(&path, server, &control_plane.authority, &control_plane.proxy_identity)
}
