//! What a pod is shown of an object: what a drain depends on, and nothing else. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use k8s_openapi::{
    api::{
        core::v1::{Container, Pod, PodSpec, PodStatus, Service, ServiceSpec},
        discovery::v1::{Endpoint, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::cluster::convert;

/// The labels by which kube-proxy takes or leaves an object, and by which a slice is a Service's.
const LABELS: [&str; 3] =
    ["kubernetes.io/service-name", "service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"];

/// Name and version, and the labels that count.
pub(super) fn metadata(metadata: &ObjectMeta, labels: bool) -> ObjectMeta {
    let kept = metadata.labels.iter().flatten().filter(|(key, _)| labels && LABELS.contains(&key.as_str()));
    let kept: BTreeMap<String, String> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    ObjectMeta {
        name: metadata.name.clone(),
        resource_version: metadata.resource_version.clone(),
        labels: Some(kept).filter(|kept| !kept.is_empty()),
        ..ObjectMeta::default()
    }
}

/// The Service whose slice this is, where it lists one of these addresses.
pub(super) fn lists(slice: &EndpointSlice, addresses: &BTreeSet<IpAddr>) -> Option<String> {
    let converted = convert::slice(slice)?.value;
    let listed = converted.endpoints.iter().any(|endpoint| endpoint.is_the_pods(addresses));
    listed.then_some(converted.service.0)
}

/// A slice in full, without whose its endpoints are and where they would rather be used.
pub(super) fn slice(slice: &EndpointSlice) -> EndpointSlice {
    let endpoint = |endpoint: &Endpoint| Endpoint {
        addresses: endpoint.addresses.clone(),
        conditions: endpoint.conditions.clone(),
        node_name: endpoint.node_name.clone(),
        ..Endpoint::default()
    };
    EndpointSlice {
        address_type: slice.address_type.clone(),
        endpoints: slice.endpoints.iter().map(endpoint).collect(),
        metadata: metadata(&slice.metadata, true),
        ports: slice.ports.clone(),
    }
}

/// A slice of a Service that does not list the pod: that there is one, and its version, which consistent reads compare.
pub(super) fn foreign_slice(slice: &EndpointSlice) -> EndpointSlice {
    EndpointSlice {
        address_type: slice.address_type.clone(),
        metadata: metadata(&slice.metadata, false),
        ..EndpointSlice::default()
    }
}

/// What kube-proxy makes of a Service.
pub(super) fn service(service: &Service) -> Service {
    let spec = service.spec.as_ref().map(|spec| ServiceSpec {
        cluster_ip: spec.cluster_ip.clone(),
        type_: spec.type_.clone(),
        external_traffic_policy: spec.external_traffic_policy.clone(),
        internal_traffic_policy: spec.internal_traffic_policy.clone(),
        health_check_node_port: spec.health_check_node_port,
        ports: spec.ports.clone(),
        ..ServiceSpec::default()
    });
    Service { metadata: metadata(&service.metadata, true), spec, status: None }
}

/// A pod as it is shown to itself. Its containers may be of several parties: of their environment, their volumes and what they
/// run nothing is told, but for the hooks.
pub(super) fn pod(pod: &Pod) -> Pod {
    let container = |container: &Container| Container {
        name: container.name.clone(),
        image: container.image.clone(),
        ports: container.ports.clone(),
        lifecycle: container.lifecycle.clone(),
        liveness_probe: container.liveness_probe.clone(),
        readiness_probe: container.readiness_probe.clone(),
        startup_probe: container.startup_probe.clone(),
        restart_policy: container.restart_policy.clone(),
        ..Container::default()
    };
    let spec = pod.spec.as_ref().map(|spec| PodSpec {
        containers: spec.containers.iter().map(container).collect(),
        init_containers: spec.init_containers.as_ref().map(|all| all.iter().map(container).collect()),
        host_network: spec.host_network,
        node_name: spec.node_name.clone(),
        readiness_gates: spec.readiness_gates.clone(),
        termination_grace_period_seconds: spec.termination_grace_period_seconds,
        ..PodSpec::default()
    });
    let status = pod.status.as_ref().map(|status| PodStatus {
        conditions: status.conditions.clone(),
        phase: status.phase.clone(),
        pod_ip: status.pod_ip.clone(),
        pod_ips: status.pod_ips.clone(),
        ..PodStatus::default()
    });
    let metadata = ObjectMeta {
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        deletion_timestamp: pod.metadata.deletion_timestamp.clone(),
        ..metadata(&pod.metadata, false)
    };
    Pod { metadata, spec, status }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What the agent makes of it is the same with and without the cut, and no word of `secret` is left.
    #[test]
    fn what_a_drain_depends_on_stays_and_the_rest_goes() {
        let text = |value: &Value| value.to_string();
        let meta = json!({
            "name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
            "labels": {"kubernetes.io/service-name": "web", "service.kubernetes.io/headless": "", "team": "secret"},
            "annotations": {"a": "secret"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
        });

        let before: Pod = serde_json::from_value(json!({
            "metadata": meta,
            "spec": {
                "terminationGracePeriodSeconds": 17, "readinessGates": [{"conditionType": "target-health.elbv2.k8s.aws/x"}],
                "volumes": [{"name": "secret"}],
                "initContainers": [{"name": "lastsyn", "restartPolicy": "Always", "env": [{"name": "A", "value": "secret"}]}],
                "containers": [{
                    "name": "web", "image": "web:1", "args": ["secret"], "env": [{"name": "A", "value": "secret"}],
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 3},
                    "lifecycle": {"preStop": {"exec": {"command": ["lastsyn", "drain"]}}},
                }],
            },
            "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
                "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
        }))
        .expect("a pod");
        let after = pod(&before);
        assert_eq!(convert::pod::own(&after), convert::pod::own(&before));
        assert_eq!(convert::pod_paths(&after), convert::pod_paths(&before));
        assert_eq!(convert::pod_read(&after, Some("u")), convert::pod_read(&before, Some("u")));
        assert!(!convert::pod_paths(&before).is_empty());
        let shown = text(&serde_json::to_value(&after).expect("JSON"));
        assert!(!shown.contains("secret"), "{shown}");

        let before: EndpointSlice = serde_json::from_value(json!({
            "metadata": meta, "addressType": "IPv4", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "a", "hostname": "secret",
                "conditions": {"ready": false, "serving": true, "terminating": true},
                "targetRef": {"kind": "Pod", "name": "secret"}}],
        }))
        .expect("a slice");
        let own = BTreeSet::from(["10.0.0.1".parse().expect("an address")]);
        assert_eq!(convert::slice(&slice(&before)), convert::slice(&before));
        assert_eq!(lists(&before, &own).as_deref(), Some("web"));
        assert_eq!(lists(&before, &BTreeSet::from(["10.0.0.2".parse().expect("an address")])), None);
        let shown = text(&serde_json::to_value(slice(&before)).expect("JSON"));
        assert!(!shown.contains("secret"), "{shown}");
        let foreign = text(&serde_json::to_value(foreign_slice(&before)).expect("JSON"));
        assert!(foreign.contains(r#""resourceVersion":"7""#) && !foreign.contains("10.0.0.1"), "{foreign}");

        let before: Service = serde_json::from_value(json!({
            "metadata": meta,
            "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1", "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Local", "healthCheckNodePort": 30000, "selector": {"team": "secret"},
                "ports": [{"name": "http", "port": 80, "nodePort": 30001, "targetPort": "http"}]},
        }))
        .expect("a Service");
        assert_eq!(convert::service(&service(&before)), convert::service(&before));
        let shown = text(&serde_json::to_value(service(&before)).expect("JSON"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
