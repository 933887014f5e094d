//! A finished product in the pod: whichever it is, it is started, told about in the agent's configuration, and stopped as a
//! kubelet stops it.

use std::{process::ExitStatus, time::Duration};

use anyhow::Result;

use crate::{AgentConfig, Envoy, HaProxy, Host, Nginx, Release};

/// The port of `HAProxy`'s health page.
const HEALTH: u16 = 8404;

/// Which product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// `HAProxy`, which is told nothing.
    HaProxy,
    /// `HAProxy` with the switches of `docs/servers.md`.
    SwitchedHaProxy,
    /// The same with a newer `HAProxy`.
    NewHaProxy,
    /// nginx.
    Nginx,
    /// Envoy.
    Envoy,
}

/// A running one. It is killed when dropped.
#[derive(Debug)]
pub enum RealServer {
    /// `HAProxy`; whether it has switches.
    HaProxy(HaProxy, bool),
    /// nginx.
    Nginx(Nginx),
    /// Envoy.
    Envoy(Envoy),
}

impl RealServer {
    /// Starts one that answers with `name` on a port of both families, and waits until it listens.
    ///
    /// # Errors
    ///
    /// When its program is missing, or it ends or does not listen in time.
    pub fn start(kind: ServerKind, host: &Host, name: &str, port: u16) -> Result<Self> {
        Ok(match kind {
            ServerKind::HaProxy => Self::HaProxy(HaProxy::start(host, name, &[port])?, false),
            ServerKind::SwitchedHaProxy => {
                Self::HaProxy(HaProxy::start_with_switches(host, Release::Installed, name, port, HEALTH)?, true)
            }
            ServerKind::NewHaProxy => {
                Self::HaProxy(HaProxy::start_with_switches(host, Release::V3_0, name, port, HEALTH)?, true)
            }
            ServerKind::Nginx => Self::Nginx(Nginx::start(host, name, port)?),
            ServerKind::Envoy => Self::Envoy(Envoy::start(host, name, port)?),
        })
    }

    /// Whether an agent has something to tell it.
    pub fn is_told(&self) -> bool {
        !matches!(self, Self::HaProxy(_, false) | Self::Nginx(_))
    }

    /// An agent's configuration with this server in it.
    #[must_use]
    pub fn tell(&self, config: AgentConfig) -> AgentConfig {
        match self {
            Self::HaProxy(server, true) => config
                .env("LASTSYN_PROXY_KIND", "haproxy")
                .env("LASTSYN_PROXY_HAPROXY_SOCKET", format!("unix:{}", server.control_socket().display()))
                .env("LASTSYN_PROXY_HAPROXY_ANNOUNCE_SERVER", "lastsyn/keep")
                .env("LASTSYN_PROXY_HAPROXY_READINESS_SERVER", "lastsyn/ready")
                .env("LASTSYN_LISTENERS_EXCLUDE", HEALTH.to_string()),
            Self::Envoy(_) => config.env("LASTSYN_PROXY_KIND", "envoy"),
            Self::HaProxy(_, false) | Self::Nginx(_) => config,
        }
    }

    /// Sends the stop signal of its official image.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn stop(&self) -> Result<()> {
        match self {
            Self::HaProxy(server, _) => server.soft_stop(),
            Self::Nginx(server) => server.stop(),
            Self::Envoy(server) => server.stop(),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within the time.
    pub fn wait(&self, within: Duration) -> Result<ExitStatus> {
        match self {
            Self::HaProxy(server, _) => server.wait(within),
            Self::Nginx(server) => server.process().wait(within),
            Self::Envoy(server) => server.process().wait(within),
        }
    }
}
