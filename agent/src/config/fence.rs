//! `fence`, and `routing.fence`: the fence's own settings, and where an agent finds it.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use hyper::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{duration, origin::shorten};

/// The fence's TCP port where nothing else is said.
const DEFAULT_PORT: u16 = 19481;

/// `fence`: the settings of `lastsyn fence`. It also takes `routing.kubeProxyHealthzPort`, `routing.ignoreNodes` and
/// `routing.poll.timeout`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fence {
    /// Address and port of its HTTP server. Default `[::]:19481`, which is IPv4 too.
    pub address: SocketAddr,
    /// At least so long between two writes of one family. More than 0s; default 1s, as kube-proxy's `minSyncPeriod`. Agents
    /// whose `routing.watchLag` is more than twice this are refused.
    #[serde(with = "duration")]
    pub spacing: Duration,
    /// The time between a node's answer and the next request, at the least. More than 0s; default 50ms.
    #[serde(with = "duration")]
    pub poll_interval: Duration,
    /// The most requests a second to all nodes together. At least 1; default 2000.
    pub max_rate: u32,
    /// Above this many nodes it does not serve. Default 300.
    pub max_nodes: u64,
    /// Who may ask. Default `endpoints`.
    pub callers: FenceCallers,
}

/// Who may ask the fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FenceCallers {
    /// Pods whose endpoints are going, by the address that a question comes from. The fence needs the right to list
    /// EndpointSlices and to get pods, everywhere.
    #[default]
    Endpoints,
    /// Whoever reaches it: a network policy says who does.
    Any,
}

/// Where an agent finds the fence; `off`: there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FenceUrl(Option<FencePlace>);

/// Where a fence answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencePlace {
    text: String,
    host: String,
    port: u16,
}

impl Default for Fence {
    fn default() -> Self {
        Self {
            address: (Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into(),
            spacing: Duration::from_secs(1),
            poll_interval: Duration::from_millis(50),
            max_rate: 2000,
            max_nodes: 300,
            callers: FenceCallers::default(),
        }
    }
}

impl FenceUrl {
    /// Where the fence is, if there is one.
    pub fn place(&self) -> Option<&FencePlace> {
        self.0.as_ref()
    }
}

impl FencePlace {
    /// A name or an address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the `Host` header says.
    pub fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(address) => SocketAddr::new(address, self.port).to_string(),
            Err(_name) => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for FencePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FencePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let shown = shorten(text);
            format!("{shown:?} is not where a fence is; write http://lastsyn-fence.lastsyn-system:19481, or off")
        };
        let uri: Uri = text.trim().parse().map_err(|_invalid| wrong())?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => DEFAULT_PORT,
            None => return Err(wrong()),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if uri.scheme_str() != Some("http") || port == 0 || path != "/" {
            return Err(wrong());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { text: text.trim().to_owned(), host, port })
    }
}

impl Serialize for FenceUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_ref().map_or("off", |place| &place.text))
    }
}

impl<'de> Deserialize<'de> for FenceUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = FenceUrl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("off, or a URL such as http://lastsyn-fence.lastsyn-system:19481")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FenceUrl, E> {
                match text.trim() {
                    "off" | "" => Ok(FenceUrl(None)),
                    text => text.parse().map(|place| FenceUrl(Some(place))).map_err(E::custom),
                }
            }

            // What YAML 1.1 takes `off` for.
            fn visit_bool<E: de::Error>(self, on: bool) -> Result<FenceUrl, E> {
                if on { Err(E::invalid_value(de::Unexpected::Bool(true), &self)) } else { Ok(FenceUrl(None)) }
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_found_by_name_or_address() {
        for (text, host, port, authority) in [
            ("http://lastsyn-fence.lastsyn-system:19481", "lastsyn-fence.lastsyn-system", 19481, None),
            ("http://fence/", "fence", 19481, Some("fence:19481")),
            ("http://10.0.0.1:80", "10.0.0.1", 80, None),
            ("http://[fd00::1]:7", "fd00::1", 7, Some("[fd00::1]:7")),
        ] {
            let place: FencePlace = text.parse().expect(text);
            assert_eq!((place.host(), place.port(), place.to_string().as_str()), (host, port, text));
            let expected = authority.map_or_else(|| format!("{host}:{port}"), str::to_owned);
            assert_eq!(place.authority(), expected);
        }
        for text in [
            "https://fence:1",
            "fence:19481",
            "http://fence:0",
            "http://fence:",
            "http://a@fence",
            "http://fence/v1",
            "on",
            "/",
        ] {
            let error = text.parse::<FencePlace>().expect_err(text);
            assert!(error.contains("http://lastsyn-fence"), "{text}: {error}");
        }
    }
}
