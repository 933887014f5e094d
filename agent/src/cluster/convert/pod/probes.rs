//! Kubelet's probes that reach the pod over its network.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Pod, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::long_running;
use crate::core::{listener::Port, probe::ProbePort};

/// Every liveness, readiness and startup probe that is an `httpGet`, a `tcpSocket` or a `grpc` to the pod itself, one
/// entry each: a port that two probes connect to is there twice. Named ports are those of the probe's own container, as
/// kubelet resolves them (`pkg/kubelet/prober`). Probes that run a program, name a host that is not the pod, or a port that
/// is none, are left out. Sorted.
pub fn probe_ports(pod: &Pod) -> Vec<ProbePort> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let own = own_addresses(pod);
    let mut probes: Vec<_> = long_running(spec)
        .flat_map(|container| {
            let probes = [&container.liveness_probe, &container.readiness_probe, &container.startup_probe];
            probes.into_iter().flatten().filter_map(|probe| probe_port(probe, container, &own))
        })
        .collect();
    probes.sort();
    probes
}

fn probe_port(probe: &Probe, container: &Container, own: &[&str]) -> Option<ProbePort> {
    let is_own = |host: Option<&str>| host.is_none_or(|host| host.is_empty() || own.contains(&host));
    let port = match (&probe.http_get, &probe.tcp_socket, &probe.grpc) {
        (Some(HTTPGetAction { host, port, .. }), ..) if is_own(host.as_deref()) => number(port, container)?,
        (None, Some(socket), _) if is_own(socket.host.as_deref()) => number(&socket.port, container)?,
        (None, None, Some(grpc)) => grpc.port,
        _ => return None,
    };
    let port = Port::try_from(u16::try_from(port).ok()?).ok()?;
    let period = probe.period_seconds.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    Some(ProbePort { port, period: period.map_or(ProbePort::DEFAULT_PERIOD, Duration::from_secs) })
}

/// As kubelet resolves it (`ResolveContainerPort`): a text that is no name of a port may be a number.
fn number(port: &IntOrString, container: &Container) -> Option<i32> {
    match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name));
            named.map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    }
}

fn own_addresses(pod: &Pod) -> Vec<&str> {
    let Some(status) = &pod.status else { return Vec::new() };
    let all = status.pod_ips.iter().flatten().map(|one| one.ip.as_str());
    all.chain(status.pod_ip.as_deref()).collect()
}
