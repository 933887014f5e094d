//! What most promises are shown in: a Service of a pod that stays, on the second node, and of pods that are drained.

use anyhow::Result;

use super::{Access, Cluster, ClusterConfig, KubePod, PORT, PodSpec, Right, Service, ServiceSpec, Workload};
use crate::{AgentConfig, Server, ServerConfig};

/// The name of the pod that stays, and what its server answers.
pub const STAYS: &str = "stays";
/// The label of the Service's pods.
const APP: &str = "web";

/// A cluster with such a Service.
#[derive(Debug)]
pub struct Scene {
    /// What the drained pods' agents may ask of the API server: everything that they make use of.
    pub access: Access,
    /// The Service, called `web`.
    pub service: Service,
    /// The pod that stays.
    pub stays: KubePod,
    _server: Server,
    /// The cluster.
    pub cluster: Cluster,
}

// === impl Scene ===

impl Scene {
    /// A new cluster, and a Service as `shape` makes it of one that has the pods' port.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn up(config: &ClusterConfig, shape: impl FnOnce(ServiceSpec) -> ServiceSpec) -> Result<Self> {
        let cluster = Cluster::with(config)?;
        let service = cluster.service(&shape(ServiceSpec::new("web", APP, PORT)))?;
        let (stays, server) = serving(&cluster, 1, STAYS)?;
        let access = cluster.access("agent", &Right::ALL)?;
        Ok(Self { access, service, stays, _server: server, cluster })
    }

    /// A pod with a server and an agent on a node, numbered from 0, in every node's rules.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn workload(&self, node: usize, name: impl Into<String>, config: AgentConfig) -> Result<Workload> {
        self.workload_with(node, name, config, &self.access)
    }

    /// The same with other rights.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn workload_with(
        &self,
        node: usize,
        name: impl Into<String>,
        config: AgentConfig,
        access: &Access,
    ) -> Result<Workload> {
        let workload = Workload::start(&self.cluster, node, &PodSpec::new(name, APP, PORT), Some(access), config)?;
        self.await_routes(&workload.pod)?;
        Ok(workload)
    }

    /// Such a pod with every right that agents make use of, which may not be in any node's rules yet.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn start(&self, node: usize, name: impl Into<String>, config: AgentConfig) -> Result<Workload> {
        Workload::start(&self.cluster, node, &PodSpec::new(name, APP, PORT), Some(&self.access), config)
    }

    /// Waits until the rules of every node lead to one of its pods.
    ///
    /// # Errors
    ///
    /// When they do not in time.
    pub fn await_routes(&self, pod: &KubePod) -> Result<()> {
        self.cluster.await_routes(pod, PORT, true)
    }

    /// One more pod of the Service, without an agent, ready.
    ///
    /// # Errors
    ///
    /// When it does not come up.
    pub fn peer(&self, node: usize, name: &str) -> Result<(KubePod, Server)> {
        serving(&self.cluster, node, name)
    }
}

fn serving(cluster: &Cluster, node: usize, name: &str) -> Result<(KubePod, Server)> {
    let pod = cluster.pod(node, &PodSpec::new(name, APP, PORT))?;
    let server =
        Server::start(pod.host(), ServerConfig { name: name.to_owned(), port: PORT, ..ServerConfig::default() })?;
    pod.set_ready(true)?;
    Ok((pod, server))
}
