//! `GET /ready/NAME`: the readiness of a server in the pod, until it is to fail.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use hyper::Method;
use tokio::{sync::watch, time::timeout};

use crate::{
    client::{Answer, Candidate, Connection, Request},
    config::Url,
};

/// A server that takes longer is answered for with 504. kubelet's own time-out is 1 s where nothing else is said, and it
/// hangs up then: this one is for probes that wait longer.
const PATIENCE: Duration = Duration::from_secs(8);

/// What the handler needs. Cheap to clone.
#[derive(Clone)]
pub struct Readiness {
    upstream: Arc<BTreeMap<String, Url>>,
    failing: watch::Receiver<BTreeSet<String>>,
}

impl Readiness {
    /// Answers for these, but for those that are `failing`.
    pub fn new(upstream: BTreeMap<String, Url>, failing: watch::Receiver<BTreeSet<String>>) -> Self {
        Self { upstream: Arc::new(upstream), failing }
    }

    pub(super) async fn answer(&self, name: &str) -> Response {
        let Some(url) = self.upstream.get(name) else {
            let known = self.upstream.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "readiness.upstream names none" } else { &known };
            return say(StatusCode::NOT_FOUND, &format!("no such name; known: {known}"));
        };
        let failing = || self.failing.borrow().contains(name);
        if failing() {
            return draining();
        }
        let outcome = timeout(PATIENCE, ask(url)).await;
        // It may have come to that while the server was asked: what is said now is to be true now.
        if failing() {
            return draining();
        }
        match outcome {
            Ok(Ok(answer)) => pass_on(answer),
            Ok(Err(error)) => say(StatusCode::SERVICE_UNAVAILABLE, &format!("{url}: {error}")),
            Err(_elapsed) => say(StatusCode::GATEWAY_TIMEOUT, &format!("{url}: no answer within {PATIENCE:?}")),
        }
    }
}

/// Asks a server for its readiness. There is no time-out for its answer: the caller knows how long it can wait.
///
/// # Errors
///
/// In words, if it takes no connection or gives no whole answer.
pub async fn ask(url: &Url) -> Result<Answer, String> {
    let request =
        Request { host: url.authority().to_owned().into(), ..Request::new(Method::GET, url.path().to_owned()) };
    let mut failure = None;
    for address in url.addresses() {
        match Connection::open(&Candidate::Tcp(*address)).await {
            Ok(connection) => return connection.ask(&request).await.map_err(|error| error.to_string()),
            Err(error) => failure = failure.or(Some(error.to_string())),
        }
    }
    Err(failure.unwrap_or_default())
}

/// The server's own answer: status, kind, where it leads, body.
fn pass_on(answer: Answer) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    for name in [header::CONTENT_TYPE, header::LOCATION] {
        if let Some(value) = answer.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn draining() -> Response {
    say(StatusCode::SERVICE_UNAVAILABLE, "the pod is draining: readiness fails from here on")
}

fn say(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}
