//! Envoy, by its admin interface (<https://www.envoyproxy.io/docs/envoy/latest/operations/admin>).
//!
//! `POST /drain_listeners?graceful&skip_exit` asks clients to leave (`Connection: close`, GOAWAY) and closes no listener:
//! new connections are still taken. How soon each client is asked depends on Envoy's `--drain-strategy` and
//! `--drain-time-s`: `immediate` asks at its next answer, the default `gradual` spreads it over 600 s. It cannot be taken
//! back. `POST /healthcheck/fail` fails the health check filter (and asks clients to leave, too), and never stops accepting.

use std::slice;

use hyper::{Method, StatusCode};
use serde::Deserialize;

use super::{Listener, ProxyError, View, ask, beginning};
use crate::{client::Request, config::Envoy, core::listener::Port, core::phase::Phase};

/// What admin answers to every command of ours that it has carried out.
const DONE: &str = "OK";

/// The connections of each listener. Those of a worker are a part of the listener's, and the admin listener is its own.
const CONNECTIONS: &str = "/stats?format=json&filter=%5Elistener%5C..*%5C.downstream_cx_active%24";

const LISTENERS: &str = "/listeners?format=json";

pub(super) async fn tell(config: &Envoy, phase: Phase) -> Result<(), ProxyError> {
    let path = path(config, phase);
    let answer = exchange(config, Method::POST, path).await?;
    if !std::str::from_utf8(&answer).is_ok_and(|body| body.trim() == DONE) {
        return Err(foreign(config, &Method::POST, path, &answer));
    }
    if phase == Phase::TakeBack {
        tracing::warn!(
            "Envoy passes its health check again, but goes on asking clients to leave until it is restarted"
        );
    }
    Ok(())
}

fn path(config: &Envoy, phase: Phase) -> &'static str {
    match phase {
        Phase::Announce if config.inbound_only => "/drain_listeners?graceful&skip_exit&inboundonly",
        Phase::Announce => "/drain_listeners?graceful&skip_exit",
        Phase::FailReadiness => "/healthcheck/fail",
        Phase::TakeBack => "/healthcheck/ok",
    }
}

pub(super) async fn view(config: &Envoy) -> Result<View, ProxyError> {
    let listeners = read::<Listeners>(config, LISTENERS).await?;
    let stats = read::<Stats>(config, CONNECTIONS).await?;
    Ok(put_together(&listeners, &stats))
}

#[derive(Deserialize)]
struct Listeners {
    #[serde(default)]
    listener_statuses: Vec<Status>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    name: String,
    local_address: Option<Address>,
    #[serde(default)]
    additional_local_addresses: Vec<Address>,
}

#[derive(Deserialize)]
struct Address {
    socket_address: Option<SocketAddress>,
}

#[derive(Deserialize)]
struct SocketAddress {
    address: String,
    #[serde(default)]
    port_value: u16,
}

#[derive(Deserialize)]
struct Stats {
    stats: Vec<Stat>,
}

/// Histograms, which the filter leaves out, have neither.
#[derive(Deserialize)]
struct Stat {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: u64,
}

/// A listener's statistics are named after its first address, or after its `statPrefix`.
fn put_together(listeners: &Listeners, stats: &Stats) -> View {
    let listeners = listeners.listener_statuses.iter().map(|status| {
        let addresses = status.local_address.iter().chain(&status.additional_local_addresses);
        let addresses: Vec<_> = addresses.filter_map(|address| address.socket_address.as_ref()).collect();
        let prefixes: Vec<_> =
            addresses.first().map(|address| address.stat_prefix()).into_iter().chain([status.name.clone()]).collect();
        let value = |prefix: &String| {
            let name = format!("listener.{prefix}.downstream_cx_active");
            stats.stats.iter().find(|stat| stat.name == name).map(|stat| stat.value)
        };
        Listener {
            name: status.name.clone(),
            ports: addresses.iter().filter_map(|address| Port::try_from(address.port_value).ok()).collect(),
            connections: prefixes.iter().find_map(value),
        }
    });
    View { listeners: listeners.collect() }
}

impl SocketAddress {
    fn stat_prefix(&self) -> String {
        let address = if self.address.contains(':') { format!("[{}]", self.address) } else { self.address.clone() };
        format!("{address}:{}", self.port_value).replace(':', "_")
    }
}

async fn read<T: for<'de> Deserialize<'de>>(config: &Envoy, path: &'static str) -> Result<T, ProxyError> {
    let answer = exchange(config, Method::GET, path).await?;
    serde_json::from_slice(&answer).map_err(|_other| foreign(config, &Method::GET, path, &answer))
}

async fn exchange(config: &Envoy, method: Method, path: &'static str) -> Result<bytes::Bytes, ProxyError> {
    let answer = ask(slice::from_ref(&config.admin), &Request::new(method.clone(), path)).await?;
    if answer.status == StatusCode::OK {
        return Ok(answer.body);
    }
    Err(ProxyError::Status {
        place: format!("Envoy's admin interface at {}", config.admin),
        request: format!("{method} {path}"),
        status: answer.status,
        body: beginning(&answer.body),
    })
}

fn foreign(config: &Envoy, method: &Method, path: &str, answer: &bytes::Bytes) -> ProxyError {
    ProxyError::Foreign {
        place: config.admin.to_string(),
        request: format!("{method} {path}"),
        expected: "Envoy's admin interface",
        body: beginning(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Envoy 1.40 answers.
    #[test]
    fn a_listeners_connections_are_found_by_its_address() {
        let listeners = r#"{"listener_statuses": [
            {"name": "web", "local_address": {"socket_address": {"address": "::", "port_value": 28080}}},
            {"name": "v4", "local_address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}},
             "additional_local_addresses": [{"socket_address": {"address": "::", "port_value": 81}}]},
            {"name": "named", "local_address": {"pipe": {"path": "/tmp/s"}}},
            {"name": "unknown", "local_address": {"socket_address": {"address": "::", "port_value": 1}}}]}"#;
        let stats = r#"{"stats": [
            {"name": "listener.[__]_28080.downstream_cx_active", "value": 3},
            {"name": "listener.[__]_28080.worker_0.downstream_cx_active", "value": 3},
            {"name": "listener.0.0.0.0_80.downstream_cx_active", "value": 4},
            {"name": "listener.named.downstream_cx_active", "value": 5},
            {"name": "listener.admin.downstream_cx_active", "value": 1}, {"histograms": {}}]}"#;
        let view = put_together(
            &serde_json::from_str(listeners).expect("as Envoy answers"),
            &serde_json::from_str(stats).expect("as Envoy answers"),
        );
        let shown: Vec<_> = view
            .listeners
            .iter()
            .map(|listener| {
                let ports = listener.ports.iter().map(|port| port.number()).collect::<Vec<_>>();
                (listener.name.as_str(), ports, listener.connections)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("web", vec![28080], Some(3)),
                ("v4", vec![80, 81], Some(4)),
                ("named", vec![], Some(5)),
                ("unknown", vec![1], None)
            ]
        );
        assert_eq!(view.connections(), 12);
    }
}
