//! Why a server could not be told or asked.

use std::time::Duration;

use hyper::StatusCode;

use crate::client::ExchangeError;

/// What went wrong, where, and what to look at.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// No connection, or no whole HTTP answer.
    #[error("{place}: {source}")]
    Exchange {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: ExchangeError,
    },
    /// The runtime socket broke.
    #[error("{place}: {source}; is it HAProxy's runtime socket (`stats socket`), and may the agent open it?")]
    Socket {
        /// Where.
        place: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// No answer in time.
    #[error("{place}: no answer within {} s", within.as_secs())]
    Slow {
        /// Where.
        place: String,
        /// How long was waited.
        within: Duration,
    },
    /// Another status than the one that says it was done.
    #[error("{place} answered {request} with {status}{}", shown(body))]
    Status {
        /// Where.
        place: String,
        /// What was asked.
        request: String,
        /// What came.
        status: StatusCode,
        /// The beginning of its body.
        body: String,
    },
    /// An answer that the server of this kind does not give.
    #[error(
        "{place} answered {request} with something else than {expected} does{}: is it the right address?",
        shown(body)
    )]
    Foreign {
        /// Where.
        place: String,
        /// What was asked.
        request: String,
        /// Who was expected there.
        expected: &'static str,
        /// The beginning of the answer.
        body: String,
    },
    /// `HAProxy` said no.
    #[error("{place} answered `{command}`: {answer}")]
    Refused {
        /// Where.
        place: String,
        /// What was asked.
        command: String,
        /// What it said.
        answer: String,
    },
}

impl ProxyError {
    /// Whether asking again may help: the server may be starting, or busy.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Exchange { .. } | Self::Socket { .. } | Self::Slow { .. } => true,
            Self::Status { status, .. } => status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS,
            Self::Foreign { .. } | Self::Refused { .. } => false,
        }
    }
}

fn shown(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(" ({body:?})") }
}
