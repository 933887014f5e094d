//! `proxy` and `readiness`: what the server in the pod is told, how, and when.

use std::{collections::BTreeMap, fmt, net::Ipv4Addr, time::Duration};

use hyper::Method;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{duration, origin::shorten, place, url::Url};
use crate::client::Candidate;

/// The admin port of Envoy Gateway's bootstrap.
const ENVOY_GATEWAY_ADMIN: u16 = 19000;

/// The ports that Envoy Gateway's bootstrap opens beside it, for metrics and readiness.
const ENVOY_GATEWAY_OTHERS: [u16; 2] = [19001, 19003];

/// `proxy`: the server in the pod that is told of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Proxy {
    /// What it is. Default `none`: nobody is told anything.
    pub kind: ProxyKind,
    /// For `kind: envoy` alone.
    pub envoy: Envoy,
    /// For `kind: haproxy` alone.
    pub haproxy: HaProxy,
    /// For `kind: http` alone.
    pub http: Http,
}

/// What the server in the pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyKind {
    /// One that is told nothing: nginx, or any other.
    #[default]
    None,
    /// Envoy, by its admin interface.
    Envoy,
    /// `HAProxy`, by its runtime socket.
    Haproxy,
    /// Any that takes HTTP requests.
    Http,
}

/// `proxy.envoy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Envoy {
    /// The admin interface: `ADDRESS:PORT` or `unix:PATH`. Default `127.0.0.1:19000`, as in Envoy Gateway's bootstrap. Its
    /// port is not watched; with 19000, neither are 19001 and 19003.
    #[serde(with = "place")]
    pub admin: Candidate,
    /// Ask only clients of inbound listeners to leave (`traffic_direction: INBOUND`), as in a mesh. Default false.
    pub inbound_only: bool,
}

/// `proxy.haproxy`. A runtime socket can neither ask clients to leave nor fail a health page by itself; the two servers are
/// switches that the configuration of `HAProxy` looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HaProxy {
    /// The runtime socket, of level `admin`: `unix:PATH` or `ADDRESS:PORT`. Default `unix:/run/haproxy/admin.sock`.
    #[serde(with = "place")]
    pub socket: Candidate,
    /// It is the master's socket (`-S`): commands go to its first worker (`@1`). Default false.
    pub master: bool,
    /// A server, `BACKEND/SERVER`, that is disabled to announce the drain. Default `null`: nothing is announced.
    pub announce_server: Option<ServerName>,
    /// A server, `BACKEND/SERVER`, that is disabled to fail readiness. Default `null`: `HAProxy` is not told.
    pub readiness_server: Option<ServerName>,
}

/// A server of a backend of `HAProxy`: `BACKEND/SERVER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName(String);

/// `proxy.http`: a request for each phase. `null` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Http {
    /// Asks clients to leave. New connections must still be served after it.
    pub announce: Option<HttpRequest>,
    /// Fails readiness.
    pub fail_readiness: Option<HttpRequest>,
    /// Takes back what can be, where the pod turns out not to be terminating.
    pub take_back: Option<HttpRequest>,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpRequest {
    /// Default `POST`.
    #[serde(default = "post", with = "method")]
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// Default empty.
    #[serde(default)]
    pub body: String,
    /// The status that says it was done, 100 to 599. Default `null`: any from 200 to 299.
    #[serde(default, deserialize_with = "status")]
    pub status: Option<u16>,
}

/// `readiness`: when the pod fails readiness, and whose readiness the agent can answer for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Readiness {
    /// Default `auto`.
    pub fail_after: FailAfter,
    /// `NAME: URL`: the agent answers `GET /ready/NAME` with what the URL does, and with 503 once readiness fails. Names
    /// are of lower-case letters, digits and dashes. Default none.
    pub upstream: BTreeMap<String, Url>,
}

/// When readiness fails in a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailAfter {
    /// Once another endpoint takes over wherever the pod was routed to. Where routing is not watched, never.
    #[default]
    Auto,
    /// Not before the end.
    Never,
    /// This long after the hook's call.
    Fixed(Duration),
}

// === impl Proxy ===

impl Proxy {
    /// The ports of the server that are not for clients: they are not watched.
    pub fn own_ports(&self) -> Vec<u16> {
        match (self.kind, &self.envoy.admin) {
            (ProxyKind::Envoy, Candidate::Tcp(admin)) if admin.port() == ENVOY_GATEWAY_ADMIN => {
                [ENVOY_GATEWAY_ADMIN].into_iter().chain(ENVOY_GATEWAY_OTHERS).collect()
            }
            (ProxyKind::Envoy, Candidate::Tcp(admin)) => vec![admin.port()],
            _ => Vec::new(),
        }
    }
}

impl ProxyKind {
    /// As it is configured; the block of the same name is its own.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Envoy => "envoy",
            Self::Haproxy => "haproxy",
            Self::Http => "http",
        }
    }
}

impl Default for Envoy {
    fn default() -> Self {
        Self { admin: Candidate::Tcp((Ipv4Addr::LOCALHOST, ENVOY_GATEWAY_ADMIN).into()), inbound_only: false }
    }
}

impl Default for HaProxy {
    fn default() -> Self {
        Self {
            socket: Candidate::Unix("/run/haproxy/admin.sock".into()),
            master: false,
            announce_server: None,
            readiness_server: None,
        }
    }
}

// === impl ServerName ===

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ServerName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // What HAProxy takes in names. Anything else could be a second command.
        let named = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_'))
        };
        match text.split_once('/') {
            Some((backend, server)) if named(backend) && named(server) => Ok(Self(text)),
            _ => Err(de::Error::custom(format_args!(
                "{:?} is not BACKEND/SERVER, such as lastsyn/ready",
                shorten(&text)
            ))),
        }
    }
}

// === impl HttpRequest ===

fn post() -> Method {
    Method::POST
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    let status = Option::<u16>::deserialize(deserializer)?;
    match status {
        Some(status) if !(100..600).contains(&status) => {
            Err(de::Error::custom(format_args!("{status} is no HTTP status; they go from 100 to 599")))
        }
        status => Ok(status),
    }
}

mod method {
    use hyper::Method;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(method: &Method, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(method.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
        let text = String::deserialize(deserializer)?;
        [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE]
            .into_iter()
            .find(|method| *method == text.as_str())
            .ok_or_else(|| de::Error::custom("a method is GET, HEAD, POST, PUT, PATCH or DELETE"))
    }
}

// === impl FailAfter ===

impl Serialize for FailAfter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Never => serializer.serialize_str("never"),
            Self::Fixed(length) => duration::serialize(length, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FailAfter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = FailAfter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("auto, never, or a duration such as 40s")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FailAfter, E> {
                match text.trim() {
                    "auto" => Ok(FailAfter::Auto),
                    "never" => Ok(FailAfter::Never),
                    text => duration::Visitor.visit_str(text).map(FailAfter::Fixed),
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<FailAfter, E> {
                duration::Visitor.visit_u64(number).map(FailAfter::Fixed)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<FailAfter, E> {
                duration::Visitor.visit_i64(number).map(FailAfter::Fixed)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<FailAfter, E> {
                duration::Visitor.visit_f64(number).map(FailAfter::Fixed)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
