//! Where an agent may answer.

use std::{
    fmt,
    net::{AddrParseError, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use crate::config::{DEFAULT_PORT, DEFAULT_SOCKET};

/// One place where an agent may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix(PathBuf),
}

/// Text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCandidate {
    /// Not an address with a port.
    #[error("{text:?} is neither ADDRESS:PORT, such as 127.0.0.1:19480 or [::1]:19480, nor unix:PATH")]
    Address {
        /// What was given.
        text: String,
        /// What the parser says.
        #[source]
        error: AddrParseError,
    },
    /// `unix:` with nothing behind it.
    #[error("unix: needs a path, such as unix:{DEFAULT_SOCKET}")]
    NoPath,
}

/// The places to try where nobody names one: the agent's port on both loopback addresses, then its unix socket. Port and
/// socket are the defaults or those of the agent's own variables; an address that is only reachable by itself comes
/// first. The second list says what is wrong with a variable that was therefore ignored.
pub fn usual(environment: impl IntoIterator<Item = (String, String)>) -> (Vec<Candidate>, Vec<String>) {
    let (mut own, mut port, mut socket) = (None, DEFAULT_PORT, Some(PathBuf::from(DEFAULT_SOCKET)));
    let mut complaints = Vec::new();
    for (name, value) in environment {
        match name.as_str() {
            "LASTSYN_SERVER_ADDRESS" => match value.parse::<SocketAddr>() {
                Ok(address) => {
                    port = address.port();
                    own = Some(address).filter(|address| !address.ip().is_unspecified());
                }
                Err(error) => {
                    complaints
                        .push(format!("LASTSYN_SERVER_ADDRESS is ignored: {value:?} is not ADDRESS:PORT ({error})"));
                }
            },
            "LASTSYN_SERVER_SOCKET" => socket = (!value.is_empty()).then(|| value.into()),
            _ => {}
        }
    }
    let loopback = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    let mut candidates: Vec<_> = own.into_iter().filter(|own| !loopback.contains(own)).map(Candidate::Tcp).collect();
    candidates.extend(loopback.map(Candidate::Tcp));
    candidates.extend(socket.map(Candidate::Unix));
    (candidates, complaints)
}

// === impl Candidate ===

impl FromStr for Candidate {
    type Err = BadCandidate;

    fn from_str(text: &str) -> Result<Self, BadCandidate> {
        match text.strip_prefix("unix:") {
            Some("") => Err(BadCandidate::NoPath),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|error| BadCandidate::Address { text: text.to_owned(), error }),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> (String, usize) {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (candidates, complaints) = usual(variables);
        (candidates.iter().map(Candidate::to_string).collect::<Vec<_>>().join(" "), complaints.len())
    }

    #[test]
    fn looks_where_the_agent_is_told_to_be() {
        let usual = "127.0.0.1:19480 [::1]:19480 unix:/run/lastsyn/hook.sock";
        assert_eq!(found(&[]), (usual.into(), 0));
        assert_eq!(found(&[("LASTSYN_SERVER_ADDRESS", "somewhere")]), (usual.into(), 1));
        assert_eq!(
            found(&[("LASTSYN_SERVER_ADDRESS", "[::]:7"), ("LASTSYN_SERVER_SOCKET", "")]),
            ("127.0.0.1:7 [::1]:7".into(), 0)
        );
        assert_eq!(
            found(&[("LASTSYN_SERVER_ADDRESS", "10.0.0.5:7"), ("LASTSYN_SERVER_SOCKET", "/s")]),
            ("10.0.0.5:7 127.0.0.1:7 [::1]:7 unix:/s".into(), 0)
        );
        assert_eq!(found(&[("LASTSYN_SERVER_ADDRESS", "[::1]:19480")]), (usual.into(), 0));
    }

    #[test]
    fn reads_what_it_writes() {
        for text in ["127.0.0.1:19480", "[::1]:19480", "unix:/run/lastsyn/hook.sock"] {
            assert_eq!(text.parse::<Candidate>().expect(text).to_string(), text);
        }
        for text in ["", "localhost:1", "127.0.0.1", "unix:", "tcp:1"] {
            assert!(text.parse::<Candidate>().is_err(), "{text}");
        }
    }
}
