//! The server in the pod: what it is told, and what it says of its own connections. One file per adapter.
//!
//! Nothing here decides. The core says what is told and when; a server that does not answer is reported, and ends or
//! blocks no drain.

mod envoy;
mod error;
mod haproxy;
mod http;
mod teller;

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

pub use self::{error::ProxyError, teller::Teller};
use crate::{
    client::{Answer, Candidate, Connection, Request},
    config::{Proxy, ProxyKind},
    core::{listener::Port, phase::Phase},
};

/// How long one try may take, connecting included. On loopback a server that lives answers at once.
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// The server in the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// One that is told nothing.
    Silent,
    /// Envoy.
    Envoy(crate::config::Envoy),
    /// `HAProxy`.
    HaProxy(crate::config::HaProxy),
    /// One that takes HTTP requests.
    Http(Box<crate::config::Http>),
}

/// What a server says of its own listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Each listener or frontend.
    pub listeners: Vec<Listener>,
}

/// One listener of a server, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Its TCP ports, where the server tells.
    pub ports: Vec<Port>,
    /// How many connections it has; `None` where the server does not tell.
    pub connections: Option<u64>,
}

impl Server {
    /// The server that the operator named.
    pub fn new(config: &Proxy) -> Self {
        match config.kind {
            ProxyKind::None => Self::Silent,
            ProxyKind::Envoy => Self::Envoy(config.envoy.clone()),
            ProxyKind::Haproxy => Self::HaProxy(config.haproxy.clone()),
            ProxyKind::Http => Self::Http(Box::new(config.http.clone())),
        }
    }

    /// Whether it has an ear for this.
    pub fn hears(&self, phase: Phase) -> bool {
        match self {
            Self::Silent => false,
            Self::Envoy(_) => true,
            Self::HaProxy(config) => !haproxy::commands(config, phase).is_empty(),
            Self::Http(config) => http::request(config, phase).is_some(),
        }
    }

    /// Tells it once.
    ///
    /// # Errors
    ///
    /// If it does not answer in time, or not as it should.
    pub async fn tell(&self, phase: Phase) -> Result<(), ProxyError> {
        match self {
            Self::Silent => Ok(()),
            Self::Envoy(config) => envoy::tell(config, phase).await,
            Self::HaProxy(config) => haproxy::tell(config, phase).await,
            Self::Http(config) => http::tell(config, phase).await,
        }
    }

    /// Asks for its own view of its listeners; `None` from a server that has none to give.
    ///
    /// # Errors
    ///
    /// If it does not answer in time, or not as it should.
    pub async fn view(&self) -> Result<Option<View>, ProxyError> {
        match self {
            Self::Silent | Self::Http(_) => Ok(None),
            Self::Envoy(config) => envoy::view(config).await.map(Some),
            Self::HaProxy(config) => haproxy::view(config).await.map(Some),
        }
    }
}

impl View {
    /// All connections that it tells of.
    pub fn connections(&self) -> u64 {
        self.listeners.iter().filter_map(|listener| listener.connections).sum()
    }
}

/// Sends a request to the first of the places that takes a connection, and returns the whole answer.
async fn ask(places: &[Candidate], request: &Request) -> Result<Answer, ProxyError> {
    within(places, async {
        let mut refused = None;
        for place in places {
            match Connection::open(place).await {
                Ok(connection) => {
                    return connection
                        .ask(request)
                        .await
                        .map_err(|source| ProxyError::Exchange { place: place.to_string(), source });
                }
                Err(source) => refused = refused.or(Some(ProxyError::Exchange { place: place.to_string(), source })),
            }
        }
        // There is always a place; without one nobody answered.
        Err(refused.unwrap_or(ProxyError::Slow { place: String::new(), within: TRY_TIMEOUT }))
    })
    .await
}

/// Bounds one try.
async fn within<T>(
    places: &[Candidate],
    exchange: impl Future<Output = Result<T, ProxyError>>,
) -> Result<T, ProxyError> {
    match timeout(TRY_TIMEOUT, exchange).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => {
            let place = places.first().map(ToString::to_string).unwrap_or_default();
            Err(ProxyError::Slow { place, within: TRY_TIMEOUT })
        }
    }
}

/// The beginning of what somebody else wrote, on one line, for a message.
fn beginning(bytes: &Bytes) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(bytes.get(..bytes.len().min(SHOWN * 4)).unwrap_or_default()).into_owned();
    text.trim().chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
