//! URLs of servers in the pod. Plain HTTP to an address: what is asked is on loopback or the pod's own interface, and a
//! name would make the agent depend on DNS in the moment in which the pod goes.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use hyper::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::origin::shorten;

/// Where HTTP is where no port is named.
const HTTP: u16 = 80;

/// `http://ADDRESS[:PORT]/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    authority: String,
    addresses: Vec<SocketAddr>,
    path: String,
}

/// Why a text is no URL that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not a URL at all.
    #[error("{0:?} is not a URL; write http://127.0.0.1:8080/ready")]
    Unreadable(String),
    /// `https://`, or none.
    #[error("{0:?}: only http:// is spoken, to a server of the pod; write http://127.0.0.1:8080/ready")]
    Scheme(String),
    /// A name.
    #[error("{0:?} names a host; give an address of the pod, such as 127.0.0.1 or [::1], or localhost")]
    Host(String),
    /// A user, a password, or port 0.
    #[error("{0:?}: behind http:// comes an address and a port from 1 to 65535, and nothing else")]
    Authority(String),
}

impl Url {
    /// Where to connect, the likeliest first: `localhost` is both loopback addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What the `Host` header says.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let shown = || shorten(text);
        let uri: Uri = text.parse().map_err(|_invalid| UrlError::Unreadable(shown()))?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(UrlError::Unreadable(shown()));
        };
        if scheme != "http" {
            return Err(UrlError::Scheme(shown()));
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            // `127.0.0.1:` and `127.0.0.1:99999` have a colon, and no port that can be read.
            None if authority.as_str() == authority.host() => HTTP,
            None => return Err(UrlError::Authority(shown())),
        };
        if port == 0 || authority.as_str().contains('@') {
            return Err(UrlError::Authority(shown()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<IpAddr> = if host.eq_ignore_ascii_case("localhost") {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        } else {
            vec![host.parse().map_err(|_name| UrlError::Host(shown()))?]
        };
        Ok(Self {
            authority: authority.as_str().to_owned(),
            addresses: addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            text: text.to_owned(),
        })
    }
}

impl Serialize for Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_of_the_pod() {
        for (text, addresses, path) in [
            ("http://127.0.0.1:8080/ready?x=1", "127.0.0.1:8080", "/ready?x=1"),
            ("http://[::1]:8080/", "[::1]:8080", "/"),
            ("http://10.0.0.5", "10.0.0.5:80", "/"),
            ("http://localhost:7/a", "127.0.0.1:7 [::1]:7", "/a"),
        ] {
            let url: Url = text.parse().expect(text);
            let found: Vec<_> = url.addresses().iter().map(ToString::to_string).collect();
            assert_eq!((found.join(" ").as_str(), url.path(), url.to_string().as_str()), (addresses, path, text));
        }
    }

    #[test]
    fn says_what_is_wrong_with_others() {
        for (text, part) in [
            ("", "is not a URL"),
            ("/ready", "is not a URL"),
            ("127.0.0.1:8080", "is not a URL"),
            ("http://a b/", "is not a URL"),
            ("https://127.0.0.1/", "only http://"),
            ("http://server:8080/", "names a host"),
            ("http://127.0.0.1:0/", "from 1 to 65535"),
            ("http://127.0.0.1:/", "from 1 to 65535"),
            ("http://me:secret@127.0.0.1/", "from 1 to 65535"),
        ] {
            let error = text.parse::<Url>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
