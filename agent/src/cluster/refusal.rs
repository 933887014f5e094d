//! What became of a request to the API server that failed.

use crate::cluster::access::AccessError;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The agent may not, or has nothing to identify itself with; in words. It lasts.
    Denied(String),
    /// What was asked for is not there (404).
    Absent,
    /// The version asked for is gone (410): list again.
    Expired,
    /// Somebody else has written what was to be replaced, or made what was to be made (409).
    Conflict,
    /// Anything else: no connection, a time-out, 429, 5xx; in words. It may pass.
    Failed(String),
}

impl Refusal {
    /// A request that took too long.
    pub(crate) fn timed_out() -> Self {
        Self::Failed("the API server did not answer in time".to_owned())
    }

    /// In words.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Denied(why) | Self::Failed(why) => why,
            Self::Absent => "it is not there",
            Self::Expired => "the version is gone",
            Self::Conflict => "somebody else has written it",
        }
    }
}

impl From<&kube::Error> for Refusal {
    fn from(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of(status),
            kube::Error::Auth(error) => Self::Denied(format!("the agent has no identity for the API server: {error}")),
            error => Self::Failed(format!("the API server cannot be reached: {}", chain(error))),
        }
    }
}

impl Refusal {
    /// By what the API server says.
    pub(crate) fn of(status: &kube::core::Status) -> Self {
        match status.code {
            401 => Self::Denied("the API server does not accept the agent's token (401)".to_owned()),
            403 => Self::Denied(status.message.clone()),
            404 => Self::Absent,
            409 => Self::Conflict,
            410 => Self::Expired,
            code => Self::Failed(format!("the API server answers {code}: {}", status.message)),
        }
    }
}

impl From<&AccessError> for Refusal {
    fn from(error: &AccessError) -> Self {
        Self::Denied(error.to_string())
    }
}

/// The error with all its causes, each once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}
