//! Services.

use k8s_openapi::{
    api::core::v1::{Service as ApiService, ServicePort},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{HEADLESS, PROXY_NAME, label, name, version};
use crate::core::cluster::{Service, ServiceName, ServiceProxy, TrafficPolicy};

/// A Service; `None` where it has no name, which no API server sends.
///
/// A policy that is absent, or that this version does not know, is `Cluster` for the one reason that kube-proxy takes it
/// so (`ExternalPolicyLocal` and `InternalPolicyLocal` compare with `Local`).
pub fn service(service: &ApiService) -> Option<Service> {
    let spec = service.spec.clone().unwrap_or_default();
    let port = spec.health_check_node_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
    // kube-proxy skips a Service without a cluster IP, and one that is only a name (`ShouldSkipService`).
    let no_address = matches!(spec.cluster_ip.as_deref(), None | Some("" | "None"));
    let proxy = if label(&service.metadata, PROXY_NAME).is_some() {
        ServiceProxy::Foreign
    } else if no_address
        || spec.type_.as_deref() == Some("ExternalName")
        || label(&service.metadata, HEADLESS).is_some()
    {
        ServiceProxy::Headless
    } else {
        ServiceProxy::KubeProxy
    };
    Some(Service {
        name: ServiceName(name(&service.metadata)?.to_owned()),
        version: version(&service.metadata),
        external: policy(spec.external_traffic_policy.as_deref()),
        internal: policy(spec.internal_traffic_policy.as_deref()),
        proxy,
        ports: ports(spec.ports.as_deref().unwrap_or_default()),
        health_check_node_port: port,
    })
}

fn policy(policy: Option<&str>) -> TrafficPolicy {
    match policy {
        Some("Local") => TrafficPolicy::Local,
        _ => TrafficPolicy::Cluster,
    }
}

/// One text for all ports that differs whenever a port does, and is the same in whatever order they stand.
fn ports(ports: &[ServicePort]) -> String {
    let mut lines: Vec<String> = ports.iter().map(line).collect();
    lines.sort();
    lines.join(";")
}

fn line(port: &ServicePort) -> String {
    let target = match &port.target_port {
        None => String::new(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(name)) => format!("{name:?}"),
    };
    let (name, protocol) = (port.name.as_deref().unwrap_or_default(), port.protocol.as_deref().unwrap_or("TCP"));
    format!("{name:?} {} {protocol:?} {target} {}", port.port, port.node_port.unwrap_or_default())
}
