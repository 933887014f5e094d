//! What the agent makes of its own pod.

use serde_json::{Value, json};

use super::*;
use crate::core::listener::Port;

#[expect(clippy::needless_pass_by_value, reason = "made in place by json!")]
fn pod(spec: Value, status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "web-1", "uid": "1"}, "spec": spec, "status": status}))
        .expect("a pod")
}

#[expect(clippy::needless_pass_by_value, reason = "made in place by json!")]
fn probes(containers: Value) -> Vec<(u16, u64)> {
    let status = json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]});
    let pod = pod(json!({"containers": containers}), status);
    probe_ports(&pod).iter().map(|probe| (probe.port.number(), probe.period.as_secs())).collect()
}

#[test]
fn every_probe_over_the_network_is_there_with_its_port_and_period() {
    let ports = json!([{"name": "http", "containerPort": 8080}, {"name": "9000", "containerPort": 9001}]);
    let all = probes(json!([
        {"name": "a", "ports": ports,
            "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 7},
            "readinessProbe": {"tcpSocket": {"port": 8080}},
            "startupProbe": {"grpc": {"port": 50051}, "periodSeconds": 1}},
        {"name": "b", "readinessProbe": {"exec": {"command": ["true"]}}, "livenessProbe": {"httpGet": {"port": "http"}}},
        {"name": "c", "ports": ports, "livenessProbe": {"tcpSocket": {"port": "9000"}, "periodSeconds": 0},
            "readinessProbe": {"tcpSocket": {"port": "9002"}, "periodSeconds": 3}},
    ]));
    // A name is looked up in the probe's own container, and is a number only if it is no name there.
    assert_eq!(all, [(8080, 7), (8080, 10), (9001, 10), (9002, 3), (50051, 1)]);
}

#[test]
fn probes_of_another_host_and_of_no_port_are_left_out() {
    let of = |host: &str| probes(json!([{"name": "a", "livenessProbe": {"httpGet": {"port": 80, "host": host}}}]));
    assert_eq!(of("10.0.0.2"), []);
    assert_eq!(of("example.com"), []);
    for own in ["", "10.0.0.1", "fd00::1"] {
        assert_eq!(of(own), [(80, 10)], "{own}");
    }
    for port in [json!(0), json!(-1), json!(65_536), json!("absent"), json!("")] {
        assert_eq!(probes(json!([{"name": "a", "livenessProbe": {"tcpSocket": {"port": port}}}])), []);
    }
}

#[test]
fn sidecars_are_containers_and_other_init_containers_are_none() {
    let of = |policy: Value| {
        let init = json!([{"name": "side", "restartPolicy": policy, "livenessProbe": {"tcpSocket": {"port": 81}}}]);
        own(&pod(
            json!({"initContainers": init, "containers": [{"name": "web", "ports": [{"containerPort": 80}]}]}),
            json!({}),
        ))
    };
    let staying = of(json!("Always"));
    assert_eq!(staying.containers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["web", "side"]);
    assert_eq!(staying.probes.first().map(|probe| probe.port), Port::try_from(81).ok());
    let passing = of(Value::Null);
    assert_eq!((passing.containers.len(), passing.probes.len()), (1, 0));
    assert_eq!(
        (passing.grace_period, &passing.containers[0].ports[..], &passing.containers[0].hook),
        (None, &[80][..], &Hook::Absent)
    );
}

#[test]
fn hooks_and_the_agent_s_own_container_are_told_apart() {
    let read = |mut container: Value| {
        container["name"] = container.get("name").cloned().unwrap_or_else(|| json!("web"));
        containers(&pod(json!({"containers": [container]}), json!({}))).remove(0)
    };
    let hook = |hook: Value| read(json!({"lifecycle": {"preStop": hook}})).hook;
    assert_eq!(hook(json!({"exec": {"command": ["a", "b"]}})), Hook::Exec(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(hook(json!({"httpGet": {"port": 80}})), Hook::HttpGet);
    assert_eq!(hook(json!({"sleep": {"seconds": 5}})), Hook::Sleep(5));
    assert_eq!(hook(json!({"tcpSocket": {"port": 80}})), Hook::Absent);
    assert_eq!(hook(json!({})), Hook::Absent);
    for (agent, container) in [
        (true, json!({"name": "lastsyn"})),
        (true, json!({"image": "registry.example:5000/team/lastsyn:1@sha256:0"})),
        (true, json!({"command": ["/bin/lastsyn", "run"]})),
        (true, json!({"args": ["lastsyn"]})),
        (false, json!({"image": "example/lastsyn-demo:1", "command": ["sh", "-c", "x"]})),
    ] {
        assert_eq!(read(container.clone()).is_agent, agent, "{container}");
    }
}

#[test]
fn the_grace_period_is_the_pod_s() {
    let of = |seconds: Value| {
        own(&pod(json!({"containers": [], "terminationGracePeriodSeconds": seconds}), json!({}))).grace_period
    };
    assert_eq!(of(json!(120)), Some(Duration::from_mins(2)));
    assert_eq!(of(json!(0)), Some(Duration::ZERO));
    assert_eq!(of(json!(-5)), Some(Duration::from_secs(1)));
    assert_eq!(of(Value::Null), None);
    let nothing: Pod = serde_json::from_value(json!({"metadata": {}})).expect("a pod");
    assert_eq!(own(&nothing), OwnPod { grace_period: None, probes: Vec::new(), containers: Vec::new() });
}

#[test]
fn a_real_pod_is_taken() {
    let captured: Pod =
        serde_json::from_str(include_str!("../../../../tests/captures/pod-terminating.json")).expect("a pod");
    let captured = own(&captured);
    assert_eq!((captured.grace_period, captured.containers.len()), (Some(Duration::from_mins(1)), 1));
}
