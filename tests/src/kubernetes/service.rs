//! A Service over both families.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Api, Node, addresses::balancer};

/// What a Service gives to the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceKind {
    /// `ClusterIP`.
    #[default]
    ClusterIp,
    /// `NodePort`.
    NodePort,
    /// `LoadBalancer`; its addresses are given to it, and no load balancer is there.
    LoadBalancer,
}

/// What a Service is like.
#[derive(Clone, Debug)]
pub struct ServiceSpec {
    /// Its name.
    pub name: String,
    /// The value of the label `app` that it selects by.
    pub app: String,
    /// What it gives to the outside.
    pub kind: ServiceKind,
    /// Whether `externalTrafficPolicy` is `Local`.
    pub local: bool,
    /// `trafficDistribution`, where it has one.
    pub distribution: Option<&'static str>,
    /// Its port.
    pub port: u16,
    /// The pods' port.
    pub target: u16,
}

/// A Service that the API server has taken.
#[derive(Clone, Debug)]
pub struct Service {
    name: String,
    port: u16,
    cluster: [IpAddr; 2],
    balancer: Option<[IpAddr; 2]>,
    node_port: Option<u16>,
    health_check_node_port: Option<u16>,
}

// === impl ServiceSpec ===

impl ServiceSpec {
    /// A `ClusterIP` Service that has the port of its pods.
    pub fn new(name: impl Into<String>, app: impl Into<String>, port: u16) -> Self {
        let kind = ServiceKind::ClusterIp;
        Self { name: name.into(), app: app.into(), kind, local: false, distribution: None, port, target: port }
    }

    /// The same of another kind.
    #[must_use]
    pub fn kind(mut self, kind: ServiceKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same with the policy `Local`.
    #[must_use]
    pub fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// The same whose clients are led to endpoints that are near to them, by `trafficDistribution`.
    #[must_use]
    pub fn distributed(mut self, distribution: &'static str) -> Self {
        self.distribution = Some(distribution);
        self
    }

    fn object(&self) -> Value {
        let kind = match self.kind {
            ServiceKind::ClusterIp => "ClusterIP",
            ServiceKind::NodePort => "NodePort",
            ServiceKind::LoadBalancer => "LoadBalancer",
        };
        let mut object = json!({
            "metadata": {"name": self.name},
            "spec": {
                "type": kind,
                "ipFamilyPolicy": "RequireDualStack",
                "ipFamilies": ["IPv4", "IPv6"],
                "selector": {"app": self.app},
                "ports": [{"name": "http", "protocol": "TCP", "port": self.port, "targetPort": self.target}],
            },
        });
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            let policy = self.local.then_some("Local");
            spec.extend(policy.map(|policy| ("externalTrafficPolicy".to_owned(), policy.into())));
            spec.extend(self.distribution.map(|near| ("trafficDistribution".to_owned(), near.into())));
        }
        object
    }
}

// === impl Service ===

impl Service {
    pub(crate) fn create(api: &Api, number: u8, spec: &ServiceSpec) -> Result<Self> {
        let mut made = api.post("/api/v1/namespaces/default/services", &spec.object())?;
        let mut addresses = None;
        if spec.kind == ServiceKind::LoadBalancer {
            let given = balancer(number);
            let ingress = given.map(|address| json!({"ip": address.to_string()}));
            made = api.patch(
                &format!("/api/v1/namespaces/default/services/{}/status", spec.name),
                &json!({"status": {"loadBalancer": {"ingress": ingress}}}),
            )?;
            addresses = Some(given);
        }
        Self::read(spec, &made, addresses).with_context(|| format!("the Service that was made: {made}"))
    }

    fn read(spec: &ServiceSpec, object: &Value, balancer: Option<[IpAddr; 2]>) -> Result<Self> {
        let cluster: Vec<IpAddr> = object
            .pointer("/spec/clusterIPs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|address| address.as_str()?.parse().ok())
            .collect();
        let cluster = cluster.try_into().map_err(|other| anyhow::anyhow!("its cluster addresses are {other:?}"))?;
        let port = |pointer| object.pointer(pointer).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        Ok(Self {
            name: spec.name.clone(),
            port: spec.port,
            cluster,
            balancer,
            node_port: port("/spec/ports/0/nodePort"),
            health_check_node_port: port("/spec/healthCheckNodePort"),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its own addresses and port, over IPv4 and IPv6.
    pub fn cluster(&self) -> [SocketAddr; 2] {
        self.cluster.map(|address| (address, self.port).into())
    }

    /// Its port on a node, over IPv4 and IPv6; none where it has no such port.
    pub fn on(&self, node: &Node) -> Vec<SocketAddr> {
        self.node_port
            .map(|port| node.addresses().map(|address| SocketAddr::from((address, port))).to_vec())
            .unwrap_or_default()
    }

    /// Its load balancer's addresses, over IPv4 and IPv6; none where it has none.
    pub fn balancer(&self) -> Vec<SocketAddr> {
        self.balancer
            .map(|addresses| addresses.map(|address| SocketAddr::from((address, self.port))).to_vec())
            .unwrap_or_default()
    }

    /// `healthCheckNodePort`.
    pub fn health_check_node_port(&self) -> Option<u16> {
        self.health_check_node_port
    }
}
