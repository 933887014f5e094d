//! The pod of the kubelet's node: `HAProxy` with the agent as native sidecar, each with its hook.

use serde_json::{Value, json};

use super::{AGENT_IMAGE, PORT, WEB_IMAGE, control_plane::KUBELET_NODE};

/// The container of the agent.
pub(super) const AGENT: &str = "lastsyn";
/// The container of the server.
pub(super) const WEB: &str = "web";

/// The agent's own.
pub(super) const AGENT_PORT: u16 = 19480;

/// Starts `HAProxy`, which answers with the pod's name.
const SERVER: &str = "cat > /tmp/haproxy.cfg <<END
global
    maxconn 2000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend web
    bind 0.0.0.0:PORT
    bind :::PORT v6only
    http-request return status 200 content-type text/plain string $POD_NAME
END
exec haproxy -db -f /tmp/haproxy.cfg";

/// The agent as native sidecar, with its own hook.
pub(super) fn agent() -> Value {
    json!({
        "name": AGENT, "image": AGENT_IMAGE, "imagePullPolicy": "Never", "restartPolicy": "Always",
        "command": ["lastsyn", "run"],
        "lifecycle": drain(&["--mark"]),
        "env": [
            from("POD_NAME", "metadata.name"), from("POD_NAMESPACE", "metadata.namespace"),
            from("POD_UID", "metadata.uid"), from("POD_IPS", "status.podIPs"), from("NODE_NAME", "spec.nodeName"),
            from("HOST_IPS", "status.hostIPs"),
        ],
        "securityContext": {"capabilities": {"add": ["BPF", "NET_ADMIN"]}},
        "volumeMounts": socket(),
    })
}

/// The `lifecycle` of a container that has the hook.
pub(super) fn drain(arguments: &[&str]) -> Value {
    let command: Vec<&str> = ["lastsyn", "drain"].iter().chain(arguments).copied().collect();
    json!({"preStop": {"exec": {"command": command}}})
}

/// The volume of the agent's socket, in a container that has the hook.
pub(super) fn socket() -> Value {
    json!([{"name": "lastsyn", "mountPath": "/run/lastsyn"}])
}

/// A pod of a `ServiceAccount` with such a container.
pub(super) fn pod(account: &str, init: &[Value], containers: &[Value]) -> Value {
    json!({
        // There is no scheduler.
        "nodeName": KUBELET_NODE,
        "serviceAccountName": account,
        "initContainers": init,
        "containers": containers,
        "volumes": [{"name": "lastsyn", "emptyDir": {}}],
    })
}

fn from(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// Its server, without a hook.
pub(super) fn web() -> Value {
    // Not over the pod's network, so that no verdict rests on telling probes from clients but where `probed` says so.
    let probe = ["wget", "-q", "-O", "/dev/null", &format!("http://127.0.0.1:{PORT}/")];
    json!({
        "name": WEB, "image": WEB_IMAGE, "imagePullPolicy": "Never",
        "command": ["sh", "-c", SERVER.replace("PORT", &PORT.to_string())],
        "env": [from("POD_NAME", "metadata.name")],
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {"exec": {"command": probe}, "periodSeconds": 1},
        "volumeMounts": socket(),
    })
}

/// Its specification, with the agent's `ServiceAccount`, and with or without the server's hook.
pub(super) fn spec(account: &str, hook: bool) -> Value {
    let mut web = web();
    if hook && let Some(web) = web.as_object_mut() {
        web.insert("lifecycle".to_owned(), drain(&[]));
    }
    pod(account, &[agent()], &[web])
}

/// The same with a server that its liveness probe finds sick once, some seconds after its first start.
pub(super) fn sick_once(mut spec: Value, after_seconds: u32) -> Value {
    let server = spec.pointer("/containers/0/command/2").and_then(Value::as_str).unwrap_or_default();
    // What is in the volume outlives the container, what is in its own file system does not.
    let script = format!(
        "[ -e /run/lastsyn/was-sick ] || {{ echo > /run/lastsyn/was-sick; (sleep {after_seconds}; echo > /tmp/sick) & }}
         {server}"
    );
    let probe =
        json!({"exec": {"command": ["sh", "-c", "[ ! -e /tmp/sick ]"]}, "periodSeconds": 1, "failureThreshold": 1});
    if let Some(web) = spec.pointer_mut("/containers/0").and_then(Value::as_object_mut) {
        web.insert("command".to_owned(), json!(["sh", "-c", script]));
        web.insert("livenessProbe".to_owned(), probe);
    }
    spec
}

/// The same with a hook that the kubelet calls itself.
pub(super) fn hook_over_http(mut spec: Value) -> Value {
    let hook = json!({"preStop": {"httpGet": {"port": AGENT_PORT, "path": "/drain"}}});
    if let Some(web) = spec.pointer_mut("/containers/0").and_then(Value::as_object_mut) {
        web.insert("lifecycle".to_owned(), hook);
    }
    if let Some(variables) = spec.pointer_mut("/initContainers/0/env").and_then(Value::as_array_mut) {
        variables.push(json!({"name": "LASTSYN_SERVER_HOOK_FROM", "value": "node"}));
    }
    spec
}

/// The same with a server that the kubelet asks over the pod's network every second, at the port of its clients. It asks the
/// agent as well, which learns by that where it asks from. `probes` is the agent's `listeners.probes`.
pub(super) fn probed(mut spec: Value, probes: &str) -> Value {
    // However late an answer is on a busy machine, nothing is to be restarted for it.
    let every_second = |port: u16, path: &str| json!({"httpGet": {"port": port, "path": path}, "periodSeconds": 1, "failureThreshold": 60});
    if let Some(web) = spec.pointer_mut("/containers/0").and_then(Value::as_object_mut) {
        web.insert("readinessProbe".to_owned(), every_second(PORT, "/"));
    }
    if let Some(agent) = spec.pointer_mut("/initContainers/0").and_then(Value::as_object_mut) {
        agent.insert("livenessProbe".to_owned(), every_second(AGENT_PORT, "/healthz"));
    }
    if let Some(variables) = spec.pointer_mut("/initContainers/0/env").and_then(Value::as_array_mut) {
        variables.push(json!({"name": "LASTSYN_LISTENERS_PROBES", "value": probes}));
    }
    spec
}
