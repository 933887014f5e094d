//! What an answer says: kube-proxy's status, or who else it may be. Pure.
//!
//! Forms: kube-proxy 1.33 and newer has `status` (`pkg/proxy/healthcheck/proxy_health.go`); older ones, Cilium,
//! OVN-Kubernetes and Calico's eBPF proxy before 3.32 answer with times alone, in Go's own form, and say nothing of rules.

use std::collections::BTreeMap;

use hyper::StatusCode;
use serde::Deserialize;

use crate::core::cluster::{FamilyHealth, HealthOutcome, HealthStatus, LocalEndpointsOutcome, NodeTime};

/// Which path was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// `/livez`, which says nothing of the node's own eligibility (Kubernetes 1.28).
    Livez,
    /// `/healthz`, where there is no `/livez`.
    Healthz,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    last_updated: Option<String>,
    current_time: Option<String>,
    node_eligible: Option<bool>,
    healthy: Option<bool>,
    status: Option<BTreeMap<String, OfFamily>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFamily {
    last_updated: String,
    healthy: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocalBody {
    local_endpoints: Option<u64>,
    service: Option<LocalService>,
}

#[derive(Deserialize)]
struct LocalService {
    namespace: String,
    name: String,
}

impl Asked {
    /// The path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Livez => "/livez",
            Self::Healthz => "/healthz",
        }
    }
}

/// What a complete answer says. The status code decides nothing: 503 has the same body (C1).
pub fn outcome(asked: Asked, code: StatusCode, body: &[u8]) -> HealthOutcome {
    let Ok(read) = serde_json::from_slice::<Body>(body) else {
        return HealthOutcome::NoStatus(stranger(code, body));
    };
    let of = |family: &str| {
        let status = read.status.as_ref()?.get(family)?;
        Some(FamilyHealth { last_updated: time(&status.last_updated)?, healthy: status.healthy })
    };
    let status = HealthStatus { v4: of("IPv4"), v6: of("IPv6") };
    if status.v4.is_some() || status.v6.is_some() {
        return HealthOutcome::Status(status);
    }
    HealthOutcome::NoStatus(without_status(asked, &read))
}

/// What a `healthCheckNodePort` answers. The number counts, and not the status code: 503 is also said of a kube-proxy
/// that is not healthy.
pub fn local_endpoints(body: &[u8]) -> LocalEndpointsOutcome {
    let read = serde_json::from_slice::<LocalBody>(body).ok().and_then(|body| body.local_endpoints);
    read.map_or(LocalEndpointsOutcome::Unknown, LocalEndpointsOutcome::Endpoints)
}

/// The same for one Service: what is said of another is nothing. A port may have been another Service's before.
pub fn local_endpoints_of(body: &[u8], namespace: &str, name: &str) -> LocalEndpointsOutcome {
    let read = serde_json::from_slice::<LocalBody>(body).ok();
    let of_it = |body: &LocalBody| {
        body.service.as_ref().is_some_and(|service| service.namespace == namespace && service.name == name)
    };
    let endpoints = read.filter(of_it).and_then(|body| body.local_endpoints);
    endpoints.map_or(LocalEndpointsOutcome::Unknown, LocalEndpointsOutcome::Endpoints)
}

/// A time as kube-proxy 1.33 writes it: RFC 3339 with nanoseconds.
fn time(text: &str) -> Option<NodeTime> {
    text.parse::<jiff::Timestamp>().ok().map(|time| NodeTime(time.as_nanosecond()))
}

fn without_status(asked: Asked, body: &Body) -> String {
    let (Some(updated), Some(current)) = (&body.last_updated, &body.current_time) else {
        return "what answers is JSON, and not a kube-proxy's".to_owned();
    };
    if body.status.is_some() {
        return "its kube-proxy's status has no family that can be read".to_owned();
    }
    match (body.healthy, body.node_eligible, asked) {
        (Some(_), ..) => "its kube-proxy has just started, and has no status yet",
        (None, Some(_), _) => "its kube-proxy is older than Kubernetes 1.33, whose answer tells nothing of the rules",
        (None, None, _) if updated == current => {
            "it answers as Cilium's kube-proxy replacement does, which tells nothing of the rules"
        }
        (None, None, Asked::Livez) => {
            "its kube-proxy is older than Kubernetes 1.33, or it is OVN-Kubernetes or an older Calico: the answer tells \
             nothing of the rules"
        }
        (None, None, Asked::Healthz) => {
            "it is OVN-Kubernetes, Cilium, an older Calico, or a kube-proxy before Kubernetes 1.28: the answer tells \
             nothing of the rules"
        }
    }
    .to_owned()
}

/// Something that is not JSON, or other JSON.
fn stranger(code: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..512).unwrap_or(body)).to_lowercase();
    let text = text.trim_start();
    if text.contains("http request to an https server") || text.contains("plain http request was sent to https") {
        return "a TLS server answers on that port, and not kube-proxy".to_owned();
    }
    let what = if text.contains("service endpoints found") || text.starts_with("ok") && text.trim_end() == "ok" {
        "what answers speaks plain text, as kube-router does"
    } else if text.starts_with("<!doctype") || text.starts_with("<html") {
        "a web server answers"
    } else if body.is_empty() {
        "the answer is empty"
    } else {
        "what answers is not a kube-proxy"
    };
    format!("{what} (status {})", code.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> String {
        match outcome(Asked::Livez, StatusCode::OK, body.as_bytes()) {
            HealthOutcome::NoStatus(why) => why,
            other => panic!("{body} is {other:?}"),
        }
    }

    #[test]
    fn c2_what_answers_without_a_status_is_named() {
        for (body, names) in [
            (
                r#"{"lastUpdated":"2026-11-29T21:46:29Z","currentTime":"2026-11-29T21:46:30Z","healthy":true}"#,
                "just started",
            ),
            (r#"{"lastUpdated":"a","currentTime":"b","nodeEligible":true}"#, "older than Kubernetes 1.33"),
            (r#"{"lastUpdated":"2026 m=+1","currentTime":"2026 m=+1"}"#, "Cilium"),
            (r#"{"lastUpdated":"2026 m=+1","currentTime":"2026 m=+2"}"#, "OVN-Kubernetes"),
            (
                r#"{"lastUpdated":"a","currentTime":"b","status":{"IPv5":{"lastUpdated":"a","healthy":true}}}"#,
                "no family",
            ),
            (
                r#"{"lastUpdated":"a","currentTime":"b","status":{"IPv4":{"lastUpdated":"soon","healthy":true}}}"#,
                "no family",
            ),
            (r#"{"status":"ok"}"#, "not a kube-proxy"),
            ("{}", "JSON"),
            ("OK", "kube-router"),
            ("3 Service Endpoints found", "kube-router"),
            ("<!DOCTYPE html><title>nginx", "web server"),
            ("Client sent an HTTP request to an HTTPS server.\n", "TLS"),
            ("", "empty"),
            ("\u{0}\u{1}", "not a kube-proxy"),
        ] {
            assert!(of(body).contains(names), "{body}: {}", of(body));
        }
    }

    #[test]
    fn one_family_s_status_is_a_status() {
        let body = br#"{"status":{"IPv6":{"lastUpdated":"2026-11-29T22:46:29.000000001+01:00","healthy":false},"IPv4":{"lastUpdated":"","healthy":true}}}"#;
        let HealthOutcome::Status(status) = outcome(Asked::Livez, StatusCode::SERVICE_UNAVAILABLE, body) else {
            panic!("it has one")
        };
        let updated = NodeTime(1_795_988_789_000_000_001);
        assert_eq!(status, HealthStatus { v4: None, v6: Some(FamilyHealth { last_updated: updated, healthy: false }) });
    }

    #[test]
    fn c8_local_endpoints_are_the_number_in_the_body() {
        use LocalEndpointsOutcome::{Endpoints, Unknown};
        for (body, expected) in [
            (r#"{"service":{"namespace":"a","name":"b"},"localEndpoints":0,"serviceProxyHealthy":true}"#, Endpoints(0)),
            (r#"{"localEndpoints":2}"#, Endpoints(2)),
            (r#"{"localEndpoints":-1}"#, Unknown),
            (r#"{"localEndpoints":"0"}"#, Unknown),
            ("{}", Unknown),
            ("", Unknown),
            ("3 Service Endpoints found", Unknown),
        ] {
            assert_eq!(local_endpoints(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn local_endpoints_of_another_service_are_nothing() {
        let body = br#"{"service":{"namespace":"a","name":"b"},"localEndpoints":3,"serviceProxyHealthy":true}"#;
        assert_eq!(local_endpoints_of(body, "a", "b"), LocalEndpointsOutcome::Endpoints(3));
        assert_eq!(local_endpoints_of(body, "a", "c"), LocalEndpointsOutcome::Unknown);
        assert_eq!(local_endpoints_of(br#"{"localEndpoints":3}"#, "a", "b"), LocalEndpointsOutcome::Unknown);
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_something(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200), code in 100..600_u16) {
            let code = StatusCode::from_u16(code).expect("three digits");
            let said = outcome(Asked::Healthz, code, &body);
            proptest::prop_assert!(!matches!(said, HealthOutcome::NoStatus(why) if why.is_empty()));
            local_endpoints(&body);
        }
    }
}
