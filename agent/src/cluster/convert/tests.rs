//! Tables, real objects, and any object at all.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::api::{
    core::v1::{Node as ApiNode, Pod, Service as ApiService},
    discovery::v1::EndpointSlice,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::core::{
    cluster::{NodeName, ServiceProxy, SlicePort, TrafficPolicy, Transport},
    confirm::OperatingSystem,
    listener::Family,
    termination::PodRead,
};

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn items<T: serde::de::DeserializeOwned>(list: &str) -> Vec<T> {
    let list: Value = serde_json::from_str(list).expect("JSON");
    list["items"].as_array().expect("a list").iter().cloned().map(of).collect()
}

fn a_slice(mut with: Value) -> Converted<crate::core::cluster::Slice> {
    let labels = json!({"kubernetes.io/service-name": "web"});
    let mut whole = json!({"metadata": {"name": "web-1", "resourceVersion": "7", "labels": labels},
        "addressType": "IPv4", "endpoints": [], "ports": []});
    for (key, value) in with.as_object_mut().expect("an object") {
        whole[key] = value.take();
    }
    slice(&of::<EndpointSlice>(whole)).expect("it has a name")
}

fn addresses(text: &[&str]) -> BTreeSet<IpAddr> {
    text.iter().map(|text| text.parse().expect("an address")).collect()
}

#[test]
fn real_slices_become_what_they_say() {
    let ready = items::<EndpointSlice>(include_str!("../../../tests/captures/endpointslices-ready.json"));
    let terminating = items::<EndpointSlice>(include_str!("../../../tests/captures/endpointslices-terminating.json"));
    for (slices, pod_is_ready) in [(ready, true), (terminating, false)] {
        assert_eq!(slices.len(), 2);
        for object in slices {
            let Converted { value: slice, left_out } = slice(&object).expect("a slice");
            assert_eq!((slice.service.0.as_str(), slice.proxy, left_out), ("web-lb", ServiceProxy::KubeProxy, 0));
            let pod = if slice.family == Family::V4 { "10.244.3.13" } else { "fd00:244:3::13" };
            let port = SlicePort {
                name: crate::core::cluster::PortName("http".into()),
                transport: Transport::Tcp,
                number: 8080,
            };
            assert_eq!(slice.ports, [port]);
            assert_eq!(slice.endpoints.len(), 3);
            let pod = slice.endpoints.iter().find(|one| one.is_the_pods(&addresses(&[pod]))).expect("the pod");
            assert_eq!(pod.node, Some(NodeName("node-c".into())));
            assert_eq!((pod.is_ready(), pod.is_serving(), pod.is_terminating()), (pod_is_ready, true, !pod_is_ready));
        }
    }
}

#[test]
fn real_services_nodes_and_pods_become_what_they_say() {
    let services: Vec<_> =
        items::<ApiService>(include_str!("../../../tests/captures/services.json")).iter().filter_map(service).collect();
    let balanced = services.iter().find(|one| one.name.0 == "web-lb").expect("it is there");
    assert_eq!(balanced.external, TrafficPolicy::Local);
    assert_eq!((balanced.internal, balanced.proxy), (TrafficPolicy::Cluster, ServiceProxy::KubeProxy));
    assert!(balanced.health_check_node_port.is_some());
    assert!(services.iter().all(|one| !one.version.0.is_empty()));

    let nodes = items::<ApiNode>(include_str!("../../../tests/captures/nodes.json"));
    let target = node_target(nodes.first().expect("one")).expect("a node");
    assert_eq!(target.node.name.0, "node-a");
    assert_eq!(target.addresses.iter().copied().collect::<BTreeSet<_>>(), addresses(&["10.10.0.11", "fd00:10::11"]));
    assert_eq!(target.node.system, OperatingSystem::Unknown, "these have no kubelet");

    let pod: Pod = serde_json::from_str(include_str!("../../../tests/captures/pod-terminating.json")).expect("a pod");
    let uid = pod.metadata.uid.clone();
    assert_eq!(pod_read(&pod, uid.as_deref()), PodRead::Terminating);
    let mut lives = pod;
    lives.metadata.deletion_timestamp = None;
    assert_eq!(pod_read(&lives, uid.as_deref()), PodRead::NotTerminating);
    assert_eq!(pod_read(&lives, None), PodRead::NotTerminating);
    assert_eq!(pod_read(&lives, Some("another")), PodRead::Terminating, "ours is gone");
    assert_eq!(pod_paths(&lives), []);
}

#[test]
fn w2_absent_conditions_stay_absent() {
    for conditions in [Value::Null, json!({}), json!({"ready": null})] {
        let slice = a_slice(json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions}]})).value;
        let [endpoint] = slice.endpoints.as_slice() else { panic!("one") };
        assert_eq!((endpoint.ready, endpoint.serving, endpoint.terminating), (None, None, None));
        assert_eq!((endpoint.is_ready(), endpoint.is_serving(), endpoint.is_terminating()), (true, true, false));
    }
    let said = json!({"ready": false, "serving": true, "terminating": true});
    let slice = a_slice(json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": said}]})).value;
    let [endpoint] = slice.endpoints.as_slice() else { panic!("one") };
    assert_eq!((endpoint.ready, endpoint.serving, endpoint.terminating), (Some(false), Some(true), Some(true)));
}

#[test]
fn w1_every_address_of_an_endpoint_is_its() {
    let slice = a_slice(json!({"endpoints": [{"addresses": ["rubbish", "010.0.0.1", "10.0.0.2", "fd00::1"]}]}));
    let [endpoint] = slice.value.endpoints.as_slice() else { panic!("one") };
    assert_eq!(endpoint.address, IpAddr::from([10, 0, 0, 1]), "leading zeros mean nothing");
    assert_eq!(endpoint.addresses, addresses(&["10.0.0.1", "10.0.0.2"]));
}

#[test]
fn endpoints_that_no_proxy_could_use_are_left_out_and_counted() {
    for none in [
        "[]",
        r#"["fd00::1"]"#,
        r#"["10.0.0"]"#,
        r#"["10.0.0.256"]"#,
        r#"["10..0.1"]"#,
        r#"["1.2.3.4.5"]"#,
        r#"["localhost"]"#,
        r#"[""]"#,
    ] {
        let endpoints =
            json!([{"addresses": serde_json::from_str::<Value>(none).expect("JSON")}, {"addresses": ["10.0.0.9"]}]);
        let slice = a_slice(json!({"endpoints": endpoints}));
        assert_eq!((slice.value.endpoints.len(), slice.left_out), (1, 1), "{none}");
    }
}

#[test]
fn ports_have_a_number_a_name_and_a_protocol() {
    let ports = json!([{"port": 80}, {"name": "https", "port": 443, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "sctp", "port": 7, "protocol": "SCTP"}, {"name": "none"}, {"name": "zero", "port": 0}, {"port": -1}, {"port": 65536},
        {"port": 9, "protocol": "ICMP"}]);
    let slice = a_slice(json!({"ports": ports}));
    let found: Vec<_> =
        slice.value.ports.iter().map(|port| (port.name.0.as_str(), port.number, port.transport)).collect();
    let expected = [
        ("", 80, Transport::Tcp),
        ("https", 443, Transport::Tcp),
        ("dns", 53, Transport::Udp),
        ("sctp", 7, Transport::Sctp),
    ];
    assert_eq!(found, expected);
    assert_eq!(slice.left_out, 4, "one without a number is no mistake");
    assert_eq!(a_slice(json!({"ports": null})).value.ports, []);
}

#[test]
fn what_kube_proxy_makes_nothing_of_lists_nobody_and_keeps_its_version() {
    let endpoints = json!([{"addresses": ["10.0.0.1"]}]);
    for with in [
        json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.example"]}]}),
        json!({"addressType": "Carrier pigeon", "endpoints": endpoints}),
        json!({"metadata": {"name": "web-1", "resourceVersion": "7"}, "endpoints": endpoints}),
    ] {
        let slice = a_slice(with);
        assert_eq!((slice.value.endpoints.len(), slice.left_out), (0, 0));
        assert_eq!((slice.value.name.0.as_str(), slice.value.version.0.as_str()), ("web-1", "7"));
    }
}

#[test]
fn w8_labels_say_whose_a_slice_is_whatever_their_values() {
    let (headless, named) = ("service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name");
    for (labels, proxy) in [
        (json!({"kubernetes.io/service-name": "web"}), ServiceProxy::KubeProxy),
        (json!({"kubernetes.io/service-name": "web", headless: ""}), ServiceProxy::Headless),
        (json!({"kubernetes.io/service-name": "web", named: "another"}), ServiceProxy::Foreign),
        (json!({"kubernetes.io/service-name": "web", named: "", headless: ""}), ServiceProxy::Foreign),
        // A mirrored slice, and one that somebody wrote by hand, are routed to like any other.
        (
            json!({"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"}),
            ServiceProxy::KubeProxy,
        ),
    ] {
        let slice =
            a_slice(json!({"metadata": {"name": "a", "labels": labels}, "endpoints": [{"addresses": ["10.0.0.1"]}]}));
        assert_eq!((slice.value.proxy, slice.value.endpoints.len()), (proxy, 1));
    }
}

#[test]
fn a_service_has_its_policies_and_its_proxy() {
    let (named, headless) = ("service.kubernetes.io/service-proxy-name", "None");
    for (spec, labels, external, internal, proxy) in [
        (
            json!({"clusterIP": "10.96.0.1"}),
            json!({}),
            TrafficPolicy::Cluster,
            TrafficPolicy::Cluster,
            ServiceProxy::KubeProxy,
        ),
        (
            json!({"clusterIP": "10.96.0.1", "externalTrafficPolicy": "Local"}),
            json!({}),
            TrafficPolicy::Local,
            TrafficPolicy::Cluster,
            ServiceProxy::KubeProxy,
        ),
        (
            json!({"clusterIP": "10.96.0.1", "internalTrafficPolicy": "Local", "externalTrafficPolicy": "Cluster"}),
            json!({}),
            TrafficPolicy::Cluster,
            TrafficPolicy::Local,
            ServiceProxy::KubeProxy,
        ),
        (
            json!({"clusterIP": headless}),
            json!({}),
            TrafficPolicy::Cluster,
            TrafficPolicy::Cluster,
            ServiceProxy::Headless,
        ),
        (json!({}), json!({}), TrafficPolicy::Cluster, TrafficPolicy::Cluster, ServiceProxy::Headless),
        (
            json!({"clusterIP": "10.96.0.1", "type": "ExternalName"}),
            json!({}),
            TrafficPolicy::Cluster,
            TrafficPolicy::Cluster,
            ServiceProxy::Headless,
        ),
        (
            json!({"clusterIP": "10.96.0.1"}),
            json!({named: "another"}),
            TrafficPolicy::Cluster,
            TrafficPolicy::Cluster,
            ServiceProxy::Foreign,
        ),
    ] {
        let object = json!({"metadata": {"name": "web", "resourceVersion": "3", "labels": labels}, "spec": spec});
        let found = service(&of(object)).expect("a Service");
        assert_eq!((found.external, found.internal, found.proxy), (external, internal, proxy), "{spec}");
    }
}

#[test]
fn c10_a_service_s_ports_differ_when_one_does_and_not_by_their_order() {
    let text =
        |ports: Value| service(&of(json!({"metadata": {"name": "web"}, "spec": {"ports": ports}}))).expect("it").ports;
    let web = json!({"name": "web", "port": 80, "targetPort": 8080});
    let same = text(json!([web, {"name": "admin", "port": 81}]));
    assert_eq!(same, text(json!([{"name": "admin", "port": 81, "protocol": "TCP"}, web])));
    for other in [
        json!({"name": "web", "port": 80, "targetPort": "8080"}),
        json!({"name": "web", "port": 80, "targetPort": 8081}),
        json!({"name": "web", "port": 82, "targetPort": 8080}),
        json!({"name": "web", "port": 80, "targetPort": 8080, "nodePort": 30000}),
        json!({"name": "web", "port": 80, "targetPort": 8080, "protocol": "UDP"}),
        json!({"name": "wob", "port": 80, "targetPort": 8080}),
        // What ends one port's text cannot be smuggled into a name.
        json!({"name": "web\" 80 \"TCP\" 8080 0;\"x", "port": 80, "targetPort": 8080}),
    ] {
        assert_ne!(same, text(json!([other, {"name": "admin", "port": 81}])), "{other}");
    }
}

#[test]
fn a_node_is_asked_at_its_internal_addresses() {
    let node = |metadata: Value, status: Value| node_target(&of(json!({"metadata": metadata, "status": status})));
    let linux = json!({"name": "a", "labels": {"kubernetes.io/os": "linux"}});
    assert_eq!(node(linux.clone(), json!({})).expect("a node").addresses, [] as [IpAddr; 0]);
    let listed = json!({"addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}, {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "InternalIP", "address": "rubbish"}, {"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "fd00::1"}]});
    let found = node(linux, listed).expect("a node");
    assert_eq!(found.addresses.iter().copied().collect::<BTreeSet<_>>(), addresses(&["10.0.0.1", "fd00::1"]));
    assert_eq!(found.node.system, OperatingSystem::Linux);
    let unlabelled = json!({"nodeInfo": {"operatingSystem": "windows", "architecture": "", "bootID": "", "containerRuntimeVersion": "",
        "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "osImage": "", "systemUUID": ""}});
    assert_eq!(node(json!({"name": "b"}), unlabelled).expect("a node").node.system, OperatingSystem::Windows);
    assert_eq!(node(json!({}), json!({})), None);
}

#[test]
fn w8_the_pod_tells_of_paths_that_no_service_shows() {
    let found = |spec: Value| -> Vec<_> {
        let paths = pod_paths(&of(json!({"metadata": {}, "spec": spec})));
        paths.into_iter().map(|path| (path.what, path.name)).collect()
    };
    let container = json!({"name": "a", "ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]});
    assert_eq!(found(json!({"containers": [container]})), [("hostPort".to_owned(), Some("8080".to_owned()))]);
    let sidecar = json!({"containers": [], "initContainers": [container]});
    assert_eq!(found(sidecar).len(), 1);
    let on_node = json!({"containers": [container], "hostNetwork": true});
    assert_eq!(found(on_node), [("hostNetwork".to_owned(), None)]);
    let gates = json!({"containers": [], "readinessGates": [{"conditionType": "target-health.elbv2.k8s.aws/web"}, {"conditionType": "example.com/mine"}]});
    assert_eq!(found(gates), [("readinessGate".to_owned(), Some("target-health.elbv2.k8s.aws/web".to_owned()))]);
}

#[test]
fn s5_a_disruption_target_is_terminating() {
    let with = |status: &str| -> Pod {
        of(json!({"metadata": {}, "status": {"conditions": [{"type": "DisruptionTarget", "status": status}]}}))
    };
    assert_eq!(pod_read(&with("True"), None), PodRead::Terminating);
    assert_eq!(pod_read(&with("False"), None), PodRead::NotTerminating);
}

#[test]
fn a_slice_of_a_thousand_endpoints_keeps_each() {
    let endpoints: Vec<_> =
        (0..1000).map(|one: u32| json!({"addresses": [format!("10.1.{}.{}", one / 256, one % 256)]})).collect();
    let slice = a_slice(json!({"endpoints": endpoints}));
    assert_eq!((slice.value.endpoints.len(), slice.left_out), (1000, 0));
}

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[0-9.]{0,16}".prop_map(Value::from),
        "[0-9a-f:.]{0,40}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["IPv4", "IPv6", "FQDN", "TCP", "10.0.0.1", "fd00::1", "None", "Local", ""])
            .prop_map(Value::from),
    ]
}

fn labels() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![SERVICE_NAME, HEADLESS, PROXY_NAME, "app"]);
    prop::collection::hash_map(keys.prop_map(str::to_owned), text(), 0..4)
        .prop_map(|labels| Value::Object(labels.into_iter().collect()))
}

fn condition() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from)]
}

/// Mostly what makes a slice that lists somebody: else nearly all would list nobody.
fn kind() -> impl Strategy<Value = Value> {
    prop_oneof![4 => prop::sample::select(vec!["IPv4", "IPv6"]).prop_map(Value::from), 1 => text()]
}

fn listed_address() -> impl Strategy<Value = Value> {
    prop_oneof![3 => prop::sample::select(vec!["10.0.0.1", "10.0.0.2", "fd00::1"]).prop_map(Value::from), 2 => text()]
}

prop_compose! {
    fn any_slice()(
        kind in kind(),
        mut labels in labels(),
        of_service in prop::bool::weighted(0.8),
        addresses in prop::collection::vec(prop::collection::vec(listed_address(), 0..3), 0..5),
        ready in condition(),
        port in any::<Option<i32>>(),
        protocol in text(),
    ) -> Value {
        if of_service {
            labels[SERVICE_NAME] = "web".into();
        }
        let endpoint = |list: &Vec<Value>| json!({"addresses": list, "conditions": {"ready": ready}});
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        json!({"metadata": {"name": "a", "labels": labels}, "addressType": kind, "endpoints": endpoints,
            "ports": [{"port": port, "protocol": protocol}]})
    }
}

proptest! {
    #[test]
    fn any_slice_becomes_something_and_nothing_is_lost_uncounted(object in any_slice()) {
        let listed = object["endpoints"].as_array().map_or(0, Vec::len);
        let converted = slice(&of(object)).expect("it has a name");
        let counted = converted.value.endpoints.len() + converted.left_out as usize;
        // Its one port may be among those left out.
        prop_assert!(converted.value.endpoints.is_empty() || counted == listed || counted == listed + 1);
        let family = converted.value.family;
        for endpoint in &converted.value.endpoints {
            prop_assert!(endpoint.addresses.contains(&endpoint.address));
            prop_assert!(endpoint.addresses.iter().all(|address| address.is_ipv4() == (family == Family::V4)));
        }
    }

    #[test]
    fn any_text_is_an_address_or_none(text in "[0-9.]{0,20}|.{0,20}") {
        let found = slice::address(&text);
        if let Ok(address) = text.parse::<IpAddr>() {
            prop_assert_eq!(found, Some(address));
        }
    }

    #[test]
    fn any_service_becomes_something(labels in labels(), address in text(), policy in text(), port in any::<i32>(), health in any::<Option<i32>>()) {
        let object = json!({"metadata": {"name": "a", "labels": labels}, "spec": {"clusterIP": address, "externalTrafficPolicy": policy,
            "healthCheckNodePort": health, "ports": [{"port": port}]}});
        let found = service(&of(object)).expect("it has a name");
        prop_assert_eq!(found.external == TrafficPolicy::Local, policy == "Local");
        prop_assert!(found.health_check_node_port != Some(0));
    }
}
