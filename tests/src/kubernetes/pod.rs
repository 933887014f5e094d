//! A pod: a namespace behind a node, and its Pod object, with a life as a kubelet gives it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    Api, Node, Refused,
    addresses::{hardware, pod_gateway_v4, pod_gateway_v6, pod_v4, pod_v6},
};
use crate::{AgentConfig, End, Families, Host, Lab, Link, wait::await_condition};

const INTERFACE: &str = "eth0";
/// For what the API server does by itself.
const SOON: Duration = Duration::from_secs(10);

/// What a pod is like.
#[derive(Clone, Debug)]
pub struct PodSpec {
    /// Its name.
    pub name: String,
    /// The value of its label `app`, by which Services select it.
    pub app: String,
    /// The ports of its container, with their names.
    pub ports: Vec<(String, u16)>,
    /// `terminationGracePeriodSeconds`.
    pub grace_seconds: u32,
    /// `periodSeconds` of a readiness probe at its first port; `None`: it has none. Nobody probes it in the lab.
    pub probe_seconds: Option<u32>,
}

/// A pod whose wire stands. Its object is made not ready; what listens in it is the test's business. Dropped, its namespace
/// goes at once, and its object stays.
#[derive(Debug)]
pub struct KubePod {
    name: String,
    node: String,
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    grace_seconds: u32,
    host: Host,
    api: Api,
}

// === impl PodSpec ===

impl PodSpec {
    /// A pod with one port, named `http`, and a grace period of 30 seconds.
    pub fn new(name: impl Into<String>, app: impl Into<String>, port: u16) -> Self {
        let ports = vec![("http".to_owned(), port)];
        Self { name: name.into(), app: app.into(), ports, grace_seconds: 30, probe_seconds: None }
    }
}

// === impl KubePod ===

impl KubePod {
    pub(crate) fn create(lab: &Lab, api: &Api, node: &Node, spec: &PodSpec) -> Result<Self> {
        let number = node.next_pod()?;
        let host = lab.host(&format!("pod-{}", spec.name))?;
        let (v4, v6) = (pod_v4(node.number, number), pod_v6(node.number, number));
        let (gateway_v4, gateway_v6) = (pod_gateway_v4(node.number), pod_gateway_v6(node.number));
        let interface = format!("pod{number}");
        Link {
            ends: [
                End {
                    host: node.host(),
                    interface: &interface,
                    v4: (gateway_v4, 32),
                    v6: (gateway_v6, 128),
                    hardware: hardware(node.number, number + 1, 0),
                },
                End {
                    host: &host,
                    interface: INTERFACE,
                    v4: (v4, 32),
                    v6: (v6, 128),
                    hardware: hardware(node.number, number + 1, 1),
                },
            ],
            families: Families::Dual,
            mtu: 1500,
        }
        .make()?;
        node.host().ip(&format!("route add {v4} dev {interface}\nroute add {v6} dev {interface}\n"))?;
        host.ip(&format!(
            "route add {gateway_v4} dev {INTERFACE}\n\
             route add {gateway_v6} dev {INTERFACE}\n\
             route add default via {gateway_v4} dev {INTERFACE} onlink\n\
             route add default via {gateway_v6} dev {INTERFACE} onlink\n"
        ))?;
        let pod = Self {
            name: spec.name.clone(),
            node: node.name().to_owned(),
            v4,
            v6,
            grace_seconds: spec.grace_seconds,
            host,
            api: api.clone(),
        };
        pod.api.post("/api/v1/namespaces/default/pods", &object(spec, node.name()))?;
        let ips = pod.addresses().map(|address| json!({"ip": address.to_string()}));
        let host_ips = node.addresses().map(|address| json!({"ip": address.to_string()}));
        pod.patch_status(&json!({
            "phase": "Running",
            "podIP": v4.to_string(), "podIPs": ips,
            "hostIP": node.addresses()[0].to_string(), "hostIPs": host_ips,
        }))?;
        Ok(pod)
    }

    /// Says that it is ready, or not, as its readiness probe does.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn set_ready(&self, ready: bool) -> Result<()> {
        let status = if ready { "True" } else { "False" };
        self.patch_status(&json!({"conditions": [
            {"type": "PodReadyToStartContainers", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "ContainersReady", "status": status},
            {"type": "Ready", "status": status},
            {"type": "PodScheduled", "status": "True"},
        ]}))
    }

    /// Asks for its deletion with its grace period. It is terminating when this returns; whoever plays the kubelet calls
    /// the hook now.
    ///
    /// # Errors
    ///
    /// When the API server does not take it.
    pub fn delete(&self) -> Result<()> {
        self.api.delete(&self.path(), Some(self.grace_seconds)).map(drop)
    }

    /// What a kubelet does when the last container has ended: the pod is not ready and has failed or succeeded, and then
    /// the object goes.
    ///
    /// # Errors
    ///
    /// When the API server does not take it, or keeps the object.
    pub fn finish(&self) -> Result<()> {
        self.set_ready(false)?;
        self.api.delete(&self.path(), Some(0))?;
        await_condition(&format!("the end of the object of {}", self.name), SOON, || {
            self.api
                .get(&self.path())
                .err()
                .and_then(|error| error.downcast::<Refused>().ok())
                .is_some_and(|refused| refused.code == 404)
        })
    }

    /// Its object as it is now.
    ///
    /// # Errors
    ///
    /// When the API server does not have it.
    pub fn object(&self) -> Result<Value> {
        self.api.get(&self.path())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Its namespace.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its addresses, of IPv4 and of IPv6.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }

    /// A port of it over both families.
    pub fn endpoints(&self, port: u16) -> [SocketAddr; 2] {
        self.addresses().map(|address| (address, port).into())
    }

    /// An agent with the environment that the downward API gives it.
    ///
    /// # Errors
    ///
    /// When the API server does not have its object.
    pub(crate) fn downward(&self, node: &Node, config: AgentConfig) -> Result<AgentConfig> {
        let object = self.object()?;
        let uid = object.pointer("/metadata/uid").and_then(Value::as_str).context("a Pod without a UID")?;
        let list = |addresses: [IpAddr; 2]| addresses.map(|address| address.to_string()).join(",");
        Ok(config
            .env("POD_NAME", &self.name)
            .env("POD_NAMESPACE", "default")
            .env("POD_UID", uid)
            .env("POD_IPS", list(self.addresses()))
            .env("NODE_NAME", node.name())
            .env("HOST_IPS", list(node.addresses())))
    }

    fn patch_status(&self, status: &Value) -> Result<()> {
        self.api.patch(&format!("{}/status", self.path()), &json!({"status": status})).map(drop)
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/default/pods/{}", self.name)
    }
}

fn object(spec: &PodSpec, node: &str) -> Value {
    let ports: Vec<Value> =
        spec.ports.iter().map(|(name, port)| json!({"name": name, "containerPort": port})).collect();
    let probe = spec.probe_seconds.zip(spec.ports.first());
    let probe = probe.map(|(seconds, (name, _))| json!({"tcpSocket": {"port": name}, "periodSeconds": seconds}));
    json!({
        "metadata": {"name": spec.name, "labels": {"app": spec.app}},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": spec.grace_seconds,
            "containers": [{"name": "web", "image": "lab.local/web:1", "ports": ports, "readinessProbe": probe}],
        },
    })
}
