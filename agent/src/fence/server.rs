//! What the fence answers over HTTP.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{DefaultBodyLimit, State, rejection::JsonRejection},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    callers::Callers,
    desk::{Refused, Request},
    door::Door,
    look::FenceStatus,
    metrics::Metrics,
    protocol::{PATH, Question, RefusalBody},
};
use crate::{drive::clock, server::peer::Peer, telemetry::metrics::CONTENT_TYPE};

/// The longest question.
const LONGEST_BODY: usize = 4 << 10;

/// A loop that does not answer for this long is stuck. It waits for the API server when it begins to serve.
const STUCK: Duration = Duration::from_secs(10);

/// What the handlers work with.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) callers: Callers,
    pub(super) door: Arc<Door>,
}

/// All paths.
pub(super) fn router(desk: Desk) -> Router {
    Router::new()
        .route(PATH, post(ask).layer(DefaultBodyLimit::max(LONGEST_BODY)))
        .route("/v1/status", get(status))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(healthz))
        .with_state(desk)
}

impl Desk {
    async fn look(&self) -> Option<FenceStatus> {
        let (answer, looked) = oneshot::channel();
        let look = async {
            self.requests.send(Request::Look { answer }).await.ok()?;
            looked.await.ok()
        };
        timeout(STUCK, look).await.ok()?
    }
}

async fn ask(
    State(desk): State<Desk>,
    Extension(peer): Extension<Peer>,
    question: Result<Json<Question>, JsonRejection>,
) -> Response {
    let question = match question {
        Ok(Json(question)) => question,
        Err(rejection) => return refusal(rejection.status(), rejection.body_text(), None),
    };
    let Some(caller) = peer.address() else {
        return refusal(StatusCode::FORBIDDEN, "a question comes over the network".to_owned(), None);
    };
    // The cheap look first: who asks too often costs the API server nothing.
    let admitted = match desk.callers.ask(caller, clock::now()) {
        Ok(()) => desk.door.admit(caller, &question.pod).await,
        Err(too_many) => Err(too_many.into()),
    };
    if let Err(refused) = admitted {
        desk.metrics.refused(&refused);
        return refused_as(&refused);
    }
    let (answer, taken) = oneshot::channel();
    let ask = async {
        desk.requests.send(Request::Ask { caller, question, answer }).await.ok()?;
        taken.await.ok()
    };
    match timeout(STUCK, ask).await {
        Ok(Some(Ok(parts))) => {
            let stream = futures_util::stream::unfold(parts, async |mut parts: mpsc::Receiver<Bytes>| {
                let part = parts.recv().await?;
                Some((Ok::<_, std::convert::Infallible>(part), parts))
            });
            ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(stream)).into_response()
        }
        Ok(Some(Err(refused))) => refused_as(&refused),
        Ok(None) => refusal(StatusCode::SERVICE_UNAVAILABLE, "the fence is stopping".to_owned(), None),
        Err(_elapsed) => refusal(StatusCode::SERVICE_UNAVAILABLE, "the fence's loop does not answer".to_owned(), None),
    }
}

fn refused_as(refused: &Refused) -> Response {
    let leader = match refused {
        Refused::Elsewhere { address, .. } => address.clone(),
        _ => None,
    };
    let status = match refused {
        Refused::FirstList { .. } | Refused::Families => StatusCode::UNPROCESSABLE_ENTITY,
        Refused::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
        Refused::Caller(_) => StatusCode::FORBIDDEN,
        Refused::Elsewhere { .. } | Refused::Unable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    refusal(status, refused.to_string(), leader)
}

fn refusal(status: StatusCode, error: String, leader: Option<String>) -> Response {
    let mut response = (status, Json(RefusalBody { error, leader })).into_response();
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

async fn status(State(desk): State<Desk>) -> Response {
    match desk.look().await {
        Some(status) => Json(status).into_response(),
        None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the fence's loop does not answer".to_owned(), None),
    }
}

async fn metrics(State(desk): State<Desk>) -> Response {
    let Some(status) = desk.look().await else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "the fence's loop does not answer".to_owned(), None);
    };
    let took = |lag: &super::look::Lag| Duration::from_millis(lag.last_ms);
    let slowest = status.nodes.into_iter().filter_map(|node| Some((node.node, node.family, took(&node.lag?))));
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], desk.metrics.text(slowest.collect())).into_response()
}

/// Liveness and readiness: the loop answers. Whether it can serve is known when somebody asks.
async fn healthz(State(desk): State<Desk>) -> Response {
    match desk.look().await {
        Some(_) => "ok\n".into_response(),
        None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the fence's loop does not answer".to_owned(), None),
    }
}
