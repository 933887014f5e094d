//! The agent's own pod.

mod containers;
mod probes;
#[cfg(test)]
mod tests;

use std::{net::IpAddr, time::Duration};

use k8s_openapi::api::core::v1::{Container as ApiContainer, Pod, PodSpec};

pub use self::{
    containers::{Container, Hook, containers},
    probes::probe_ports,
};
use crate::core::{probe::ProbePort, termination::PodRead, verdict::NotObserved};

/// The condition that eviction by the API, preemption, taints and garbage collection set (KEP-3329).
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// What readiness gates of load balancers that send to pods' own addresses begin with: AWS' controller (also its older
/// name for the same), GKE's network endpoint groups.
const BALANCER_GATES: [&str; 3] =
    ["target-health.elbv2.k8s.aws", "target-health.alb.ingress.k8s.aws", "cloud.google.com/load-balancer-neg-ready"];

/// `restartPolicy` of an init container that stays (KEP-753).
const ALWAYS: &str = "Always";

/// What the agent's own pod is like. It does not change while the pod lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPod {
    /// `terminationGracePeriodSeconds`: from the hook's call until kubelet kills. `None` where it does not say; the API
    /// server always does.
    pub grace_period: Option<Duration>,
    /// Kubelet's probes over the network.
    pub probes: Vec<ProbePort>,
    /// Its containers.
    pub containers: Vec<Container>,
}

/// What a pod is like.
pub fn own(pod: &Pod) -> OwnPod {
    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    OwnPod {
        // A negative one counts as 1 (`pkg/registry/core/pod`, `CheckGracefulDelete`).
        grace_period: grace.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(1))),
        probes: probe_ports(pod),
        containers: containers(pod),
    }
}

/// Whether it is ours, by its UID where that is known.
pub fn is_ours(pod: &Pod, uid: Option<&str>) -> bool {
    uid.is_none_or(|uid| pod.metadata.uid.as_deref().is_none_or(|of| of == uid))
}

/// Whether an address is a pod's own: one that runs, and not with its node's network, whose address many have.
pub fn has_address(pod: &Pod, address: IpAddr) -> bool {
    let Some(status) = &pod.status else { return false };
    let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let of_node = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    let ips = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str()).chain(status.pod_ip.as_deref());
    !over && !of_node && ips.filter_map(|ip| ip.parse::<IpAddr>().ok()).any(|ip| ip == address)
}

/// Containers that run for as long as the pod does.
fn long_running(spec: &PodSpec) -> impl Iterator<Item = &ApiContainer> {
    let stays = |container: &&ApiContainer| container.restart_policy.as_deref() == Some(ALWAYS);
    spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(stays))
}

/// S5: whether it is terminating. `uid` is our pod's, where it is known: another pod of the same name means that ours
/// has been deleted.
pub fn read(pod: &Pod, uid: Option<&str>) -> PodRead {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let disrupted = conditions.iter().any(|one| one.type_ == DISRUPTION_TARGET && one.status == "True");
    if !is_ours(pod, uid) || pod.metadata.deletion_timestamp.is_some() || disrupted {
        PodRead::Terminating
    } else {
        PodRead::NotTerminating
    }
}

/// W8: ways to the pod that no Service of its namespace shows, as its own object tells them.
pub fn paths(pod: &Pod) -> Vec<NotObserved> {
    let spec = pod.spec.clone().unwrap_or_default();
    let mut paths = Vec::new();
    let mut add = |what: &str, name: Option<String>, why: &str| {
        paths.push(NotObserved { what: what.to_owned(), name, family: None, why: why.to_owned() });
    };
    if spec.host_network == Some(true) {
        add("hostNetwork", None, "clients may use the node's address, without any Service");
    }
    let sidecars = spec.init_containers.iter().flatten();
    for container in spec.containers.iter().chain(sidecars) {
        for port in container.ports.iter().flatten() {
            if let Some(host_port) = port.host_port.filter(|_| spec.host_network != Some(true)) {
                let why = "the node passes connections to this port on to the pod as long as it runs";
                add("hostPort", Some(host_port.to_string()), why);
            }
        }
    }
    let of_balancer = |gate: &str| BALANCER_GATES.iter().any(|begin| gate.starts_with(begin));
    for gate in spec.readiness_gates.iter().flatten().filter(|gate| of_balancer(&gate.condition_type)) {
        let why = "a load balancer may send to the pod's own address; only its SYNs are seen here";
        add("readinessGate", Some(gate.condition_type.clone()), why);
    }
    paths.sort();
    paths.dedup();
    paths
}
