//! Readiness probes that go by way of the agent, which fails them once another pod takes over: `GET /ready/NAME`.

use std::collections::BTreeMap;

use super::node::Node;

/// Of a container's probe: where the agent asks in kubelet's place.
pub(super) enum Probe {
    None,
    Rewired(String),
    /// It stays, for this reason.
    Kept(&'static str),
}

/// Points a container's readiness probe at the agent.
pub(super) fn rewire(container: &mut Node) -> Probe {
    let Some(probe) = container.get("readinessProbe").filter(|probe| **probe != Node::Null) else {
        return Probe::None;
    };
    let Some(request) = probe.get("httpGet") else {
        return Probe::Kept("is not httpGet");
    };
    if request.text_at(&["scheme"]).eq_ignore_ascii_case("https") {
        return Probe::Kept("is HTTPS");
    }
    if request.get("httpHeaders").is_some_and(|headers| !headers.items().is_empty()) {
        return Probe::Kept("has headers of its own");
    }
    if !["", "127.0.0.1", "localhost", "::1"].contains(&request.text_at(&["host"])) {
        return Probe::Kept("has a host of its own");
    }
    let Some(port) = request.get("port").and_then(|port| number(container, port)) else {
        return Probe::Kept("has a port that none of its container's is called");
    };
    let path = match request.text_at(&["path"]) {
        "" => "/".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => format!("/{path}"),
    };
    let host = if request.text_at(&["host"]) == "::1" { "[::1]" } else { "127.0.0.1" };
    let own = format!("/ready/{}", container.text_at(&["name"]));
    let request = Node::map([("port", Node::Unsigned(super::PORT)), ("path", Node::text(own))]);
    match container.at_mut(&["readinessProbe"]).and_then(Node::as_map_mut) {
        Some(probe) => probe.set("httpGet", request),
        None => return Probe::None,
    }
    Probe::Rewired(format!("http://{host}:{port}{path}"))
}

/// The value of `readiness.upstream`.
pub(super) fn upstream(probes: &BTreeMap<String, String>) -> Option<String> {
    (!probes.is_empty()).then(|| serde_json::json!(probes).to_string())
}

/// A port's number, also by its name, which only its own container knows.
fn number(container: &Node, port: &Node) -> Option<u64> {
    let name = match port {
        Node::Unsigned(number) => return Some(*number),
        Node::Text(name) => name,
        _ => return None,
    };
    let ports = container.get("ports").map(Node::items).unwrap_or_default();
    let named = ports.iter().find(|port| port.text_at(&["name"]) == name);
    named.and_then(|port| port.get("containerPort")?.as_number()).or_else(|| name.parse().ok())
}
