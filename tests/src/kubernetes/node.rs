//! A node: a namespace with a kube-proxy, and pods behind it.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::json;

use super::{
    Api, Mode, Timing,
    addresses::{
        API_PORT, BALANCER_RANGES, CONTROL_PLANE_V4, CONTROL_PLANE_V6, Number, hardware, node_v4, node_v6, pod_ranges,
    },
    kube_proxy::KubeProxy,
    rule_writer::RuleWriter,
    rules,
};
use crate::{End, Families, Host, Lab, Link, wait::await_condition};

/// A node's interface to the others.
const UPLINK: &str = "eth0";

/// From a kube-proxy's first answer to its first rules.
const FIRST_RULES: Duration = Duration::from_secs(20);

/// A node of a cluster.
#[derive(Debug)]
pub struct Node {
    pub(crate) number: Number,
    name: String,
    pub(crate) host: Host,
    mode: Mode,
    pods: AtomicU8,
    proxy: Option<KubeProxy>,
}

// === impl Node ===

impl Node {
    /// The namespace, wired to the control plane's, which forwards between the nodes.
    pub(crate) fn new(lab: &Lab, control_plane: &Host, number: Number, mode: Mode) -> Result<Self> {
        let name = format!("node-{}", char::from(b'a' + number - 1));
        let host = lab.host(&name)?;
        host.forward()?;
        Link {
            ends: [
                End {
                    host: control_plane,
                    interface: &name,
                    v4: (CONTROL_PLANE_V4, 32),
                    v6: (CONTROL_PLANE_V6, 128),
                    hardware: hardware(number, 0, 0),
                },
                End {
                    host: &host,
                    interface: UPLINK,
                    v4: (node_v4(number), 32),
                    v6: (node_v6(number), 128),
                    hardware: hardware(number, 0, 1),
                },
            ],
            families: Families::Dual,
            mtu: 1500,
        }
        .make()?;
        let (v4, v6) = (node_v4(number), node_v6(number));
        let [pods_v4, pods_v6] = pod_ranges(number);
        control_plane.ip(&format!(
            "route add {v4} dev {name}\n\
             route add {v6} dev {name}\n\
             route add {pods_v4} via {v4} dev {name} onlink\n\
             route add {pods_v6} via {v6} dev {name} onlink\n"
        ))?;
        host.ip(&format!(
            "route add {CONTROL_PLANE_V4} dev {UPLINK}\n\
             route add {CONTROL_PLANE_V6} dev {UPLINK}\n\
             route add default via {CONTROL_PLANE_V4} dev {UPLINK} onlink\n\
             route add default via {CONTROL_PLANE_V6} dev {UPLINK} onlink\n"
        ))?;
        Ok(Self { number, name, host, mode, pods: AtomicU8::new(0), proxy: None })
    }

    /// Makes its Node object, as a kubelet does when it registers.
    pub(crate) fn register(&self, api: &Api) -> Result<()> {
        let ranges = pod_ranges(self.number);
        api.post(
            "/api/v1/nodes",
            &json!({
                "metadata": {"name": self.name, "labels": {
                    "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux",
                    // Each is a zone of its own, which matters to Services alone that ask for it.
                    "topology.kubernetes.io/zone": format!("zone-of-{}", self.name),
                }},
                "spec": {"podCIDR": ranges[0], "podCIDRs": ranges},
            }),
        )?;
        let addresses = self.addresses().map(|address| json!({"type": "InternalIP", "address": address.to_string()}));
        api.patch(
            &format!("/api/v1/nodes/{}/status", self.name),
            &json!({"status": {"addresses": addresses, "conditions": [{"type": "Ready", "status": "True"}]}}),
        )?;
        Ok(())
    }

    /// Starts its kube-proxy, in the mode of the cluster.
    pub(crate) fn start_proxy(&mut self, timing: Timing, kubeconfig: &Path, writer: Option<&RuleWriter>) -> Result<()> {
        let address = node_v4(self.number).into();
        let proxy = KubeProxy::start(&self.host, address, (self.mode, timing), kubeconfig, writer)?;
        self.proxy = Some(proxy);
        Ok(())
    }

    /// The name of its Node object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its namespace.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Its addresses, of IPv4 and of IPv6.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [node_v4(self.number).into(), node_v6(self.number).into()]
    }

    /// Its kube-proxy.
    ///
    /// # Panics
    ///
    /// When the cluster is not up yet, which nobody outside of it sees.
    #[expect(clippy::expect_used, reason = "a cluster that is handed out has started every node's kube-proxy")]
    pub fn proxy(&self) -> &KubeProxy {
        self.proxy.as_ref().expect("the cluster is up")
    }

    /// Whether its rules send new connections of any Service to an endpoint. This is read from the rules.
    ///
    /// # Errors
    ///
    /// When the rules cannot be read.
    pub fn routes_to(&self, endpoint: SocketAddr) -> Result<bool> {
        rules::route_to(&self.host, self.mode, endpoint)
    }

    /// Waits until it has rules of both families: a kube-proxy that starts gives times before it has written any.
    pub(crate) fn await_rules(&self) -> Result<()> {
        for address in self.addresses() {
            let mut last = None;
            let found = await_condition(&format!("rules of {}", self.name), FIRST_RULES, || {
                self.routes_to((address, 1).into()).map_err(|error| last = Some(error)).is_ok()
            });
            found.with_context(|| last.map(|error| format!("{error:#}")).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Drops everything between it and the API server.
    ///
    /// # Errors
    ///
    /// When the rule cannot be added.
    pub fn cut(&self) -> Result<()> {
        // Before anything that kube-proxy's rules do.
        self.host.nft(&format!(
            "table inet cut {{\n\
               chain out {{ type filter hook output priority -300; tcp dport {API_PORT} drop; }}\n\
               chain in {{ type filter hook input priority -300; tcp sport {API_PORT} drop; }}\n\
             }}\n"
        ))
    }

    /// Ends a [`cut`](Self::cut).
    ///
    /// # Errors
    ///
    /// When it was not cut.
    pub fn heal(&self) -> Result<()> {
        self.host.nft("delete table inet cut\n")
    }

    /// Sends what goes to load balancers' addresses from `host`, which stands outside of the cluster, to this node.
    ///
    /// # Errors
    ///
    /// When the route cannot be set.
    pub(crate) fn take_balancers(&self, outside: &Host) -> Result<()> {
        let [v4, v6] = self.addresses();
        let [range_v4, range_v6] = BALANCER_RANGES;
        let name = &self.name;
        outside.ip(&format!(
            "route replace {range_v4} via {v4} dev {name} onlink\n\
             route replace {range_v6} via {v6} dev {name} onlink\n"
        ))
    }

    /// A number for a new pod; none is given twice.
    pub(crate) fn next_pod(&self) -> Result<u8> {
        self.pods
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| (number < 200).then_some(number + 1))
            .map_err(|_full| anyhow::anyhow!("{} had 200 pods", self.name))
            .context("a lab's node gives no address twice")
    }
}
