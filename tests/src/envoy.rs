//! A real Envoy, with the ports of Envoy Gateway's bootstrap beside its own: admin on loopback, readiness and metrics for
//! everybody.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Host, Process, programs, sockets};

/// Where `cargo xtask setup` puts it.
const PROGRAM: &str = "envoy-1.40.0/envoy";

/// Its admin interface.
pub const ADMIN: u16 = 19000;
/// Its metrics.
pub const METRICS: u16 = 19001;
/// Its readiness, `/ready`, by the health check filter.
pub const READINESS: u16 = 19003;

/// How it is started. Hot restart would share memory with every other Envoy of the machine.
pub(crate) const OPTIONS: [&str; 9] = [
    "--drain-strategy",
    "immediate",
    "--drain-time-s",
    "60",
    "--concurrency",
    "1",
    "--disable-hot-restart",
    "--log-level",
    "warning",
];

const HTTP: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const HEALTH_CHECK: &str = "type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck";
const ROUTER: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";

/// A running Envoy that answers every request with its name, over HTTP/1.1 and HTTP/2. It is killed when dropped.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
}

impl Envoy {
    /// Starts it with `--drain-strategy immediate`, and waits until it listens. That takes no connection.
    ///
    /// # Errors
    ///
    /// When it is not there, or ends or does not listen in time; the message has what it wrote.
    pub fn start(host: &Host, name: &str, port: u16) -> Result<Self> {
        let path = host.directory().join(format!("envoy-{}-{name}.json", host.role()));
        fs::write(&path, configure(name, port).to_string())
            .with_context(|| format!("{} was not written", path.display()))?;
        let process = Process::start(
            format!("Envoy in {}", host.role()),
            host.command(program()?)?.arg("--config-path").arg(&path).args(OPTIONS),
        )?;
        sockets::await_listeners(host, &process, &[port, ADMIN, METRICS, READINESS], 1)?;
        Ok(Self { process })
    }

    /// Sends the stop signal of a kubelet: it ends at once, with its connections.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn stop(&self) -> Result<()> {
        self.process.signal(Signal::TERM)
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Its admin interface, for whoever is in its host.
    pub fn admin() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, ADMIN).into()
    }
}

/// Its program.
pub(crate) fn program() -> Result<PathBuf> {
    programs::cached(PROGRAM)
}

/// The configuration of one that answers with its name on a port.
pub(crate) fn configure(name: &str, port: u16) -> Value {
    json!({
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": ADMIN}}},
        "static_resources": {"listeners": [
            listener("web", port, name, &[]),
            listener("metrics", METRICS, "metrics", &[]),
            listener("readiness", READINESS, "", &[json!({
                "name": "envoy.filters.http.health_check",
                "typed_config": {
                    "@type": HEALTH_CHECK,
                    "pass_through_mode": false,
                    "headers": [{"name": ":path", "string_match": {"exact": "/ready"}}]}})]),
        ]}
    })
}

fn listener(name: &str, port: u16, answer: &str, filters: &[Value]) -> Value {
    let router = json!({"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}});
    let filters: Vec<_> = filters.iter().cloned().chain([router]).collect();
    json!({
        "name": name,
        "address": {"socket_address": {"address": "::", "port_value": port, "ipv4_compat": true}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": HTTP,
                "stat_prefix": name,
                "codec_type": "AUTO",
                // The lab's clients of single connections ask with HTTP/1.0.
                "http_protocol_options": {"accept_http_10": true},
                "route_config": {"virtual_hosts": [{
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"},
                        "direct_response": {"status": 200, "body": {"inline_string": answer}}}]}]},
                "http_filters": filters}}]}]
    })
}
