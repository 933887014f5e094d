//! Between the server and the loop: a question, and its answer as it grows.

use std::net::IpAddr;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::{look::FenceStatus, protocol::Question};

/// How many parts of an answer may wait for their reader. One that reads nothing is told of the newest state when it does.
const WAITING: usize = 4;

/// What the server wants of the loop.
pub(super) enum Request {
    /// A question.
    Ask {
        caller: IpAddr,
        question: Question,
        /// The answer's parts, or why there is none.
        answer: oneshot::Sender<Result<mpsc::Receiver<Bytes>, Refused>>,
    },
    /// A look at the fence.
    Look { answer: oneshot::Sender<FenceStatus> },
    /// It is to stop.
    Stop,
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// Its bound is longer than markers that are spaced so allow.
    #[error(
        "the agent assumes firstList<={asked_ms}ms (routing.watchLag), and this fence's markers can be told apart up to \
         {longest_ms} ms; set fence.spacing to half of routing.watchLag or more"
    )]
    FirstList { asked_ms: u64, longest_ms: u64 },
    /// No family, or one twice.
    #[error("a question names one or two families, each once")]
    Families,
    /// Too much is asked.
    #[error("{0}")]
    TooMany(#[from] super::callers::TooMany),
    /// The address that it comes from is not an endpoint's that is going; in words.
    #[error("{0}")]
    Caller(String),
    /// Another replica serves.
    #[error("{holder} serves as the fence now")]
    Elsewhere { holder: String, address: Option<String> },
    /// It cannot serve now; in words.
    #[error("the fence cannot serve: {0}")]
    Unable(String),
}

/// The parts of an answer.
pub(super) fn answer() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(WAITING)
}
