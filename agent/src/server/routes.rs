//! The paths.

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    extract::{Path, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{error::Elapsed, timeout},
};

use super::{
    peer::{MayLast, Peer},
    readiness::Readiness,
    scrape::Scrapes,
    status::Status,
};
use crate::{
    config::HookFrom,
    drive::{Gone, Handle, Look},
    observe::find,
    telemetry::{
        log::LevelHandle,
        metrics::{self, Metrics},
    },
};

/// A loop that does not answer for this long is stuck.
const STUCK: Duration = Duration::from_secs(2);

/// Where the agent's own preStop hook says that it was called.
pub const MARK: &str = "/drain/mark";

/// What the User-Agent of kubelet's probes and of its hooks begins with (`pkg/probe/http/request.go` and
/// `pkg/kubelet/lifecycle/handlers.go` in Kubernetes). Anybody can say so: it is only a reason to ask the kernel.
const KUBELET: [&str; 2] = ["kube-probe/", "kube-lifecycle/"];

/// Longer than any sensible log level.
const LEVEL_LENGTH: usize = 4096;

/// What the handlers work with.
#[derive(Clone)]
pub(super) struct AppState {
    handle: Handle,
    addresses: watch::Receiver<Vec<IpAddr>>,
    level: LevelHandle,
    scrapes: Scrapes,
    readiness: Readiness,
    /// Who may call the hook; `None` where none is held.
    hook_from: Option<HookFrom>,
}

impl AppState {
    pub(super) fn new(
        handle: Handle,
        addresses: watch::Receiver<Vec<IpAddr>>,
        level: LevelHandle,
        metrics: Arc<Metrics>,
        readiness: Readiness,
        hook_from: Option<HookFrom>,
    ) -> Self {
        Self { handle, addresses, level, scrapes: Scrapes::of(metrics), readiness, hook_from }
    }

    async fn look(&self) -> Result<Look, Failure> {
        Ok(timeout(STUCK, self.handle.look()).await??)
    }

    /// Whether the kernel shows that a process of this node is at the other end.
    async fn is_of_this_node(&self, peer: Peer) -> Result<bool, Failure> {
        let Some(asker) = peer.asker() else { return Ok(false) };
        Ok(timeout(STUCK, self.handle.is_of_this_node(asker)).await??)
    }
}

/// All paths.
pub(super) fn router(state: AppState) -> Router {
    let hook = Router::new()
        // Who only asks for the head of an answer wants no drain.
        .route("/drain", get(drain).post(drain).head(async || StatusCode::METHOD_NOT_ALLOWED))
        .route_layer(middleware::from_fn_with_state(state.clone(), only_who_may_call_the_hook));
    let pod_only = Router::new()
        .route(MARK, post(mark))
        .route("/v1/log-level", get(level).put(set_level))
        .route_layer(middleware::from_fn_with_state(state.clone(), only_the_pod));
    Router::new()
        .merge(hook)
        .merge(pod_only)
        .route("/v1/status", get(status))
        .route("/v1/report", get(report))
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/ready/{name}", get(ready))
        .layer(middleware::from_fn_with_state(state.clone(), note_kubelet))
        .with_state(state)
}

/// Why a request was not done.
enum Failure {
    Stopping,
    Stuck,
    NotThePod,
    NotTheNode,
    Observes,
    Level(String),
}

impl From<Elapsed> for Failure {
    fn from(_: Elapsed) -> Self {
        Self::Stuck
    }
}

impl From<Gone> for Failure {
    fn from(Gone: Gone) -> Self {
        Self::Stopping
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "the agent is stopping".to_owned()),
            Self::Stuck => {
                (StatusCode::SERVICE_UNAVAILABLE, format!("the agent's loop has not answered for {STUCK:?}"))
            }
            Self::NotThePod => {
                let error = "only the pod itself may ask for this: over loopback, its own addresses or the unix socket; \
                             use the exec hook `lastsyn drain`";
                (StatusCode::FORBIDDEN, error.to_owned())
            }
            Self::NotTheNode => {
                let error = "only the pod itself and processes of its node may ask for this, as far as the sensor knows \
                             them; use the exec hook `lastsyn drain`";
                (StatusCode::FORBIDDEN, error.to_owned())
            }
            Self::Observes => {
                let error = "mode is observe: this agent holds no hook; `lastsyn drain` holds to its own bound";
                (StatusCode::CONFLICT, error.to_owned())
            }
            Self::Level(error) => (StatusCode::BAD_REQUEST, error),
        };
        (status, Json(json!({ "error": error }))).into_response()
    }
}

/// Has the kernel asked who sends requests in kubelet's name.
async fn note_kubelet(
    State(state): State<AppState>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let agent = request.headers().get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    if let Some(asker) = peer.asker()
        && KUBELET.iter().any(|begin| agent.starts_with(begin))
    {
        // An agent that is stopping learns nothing any more.
        state.handle.kubelet_asked(asker).ok();
    }
    next.run(request).await
}

/// S10, for the hook: `server.hookFrom` says who may call it. Its caller waits for as long as it takes.
async fn only_who_may_call_the_hook(
    State(state): State<AppState>,
    Extension(peer): Extension<Peer>,
    Extension(may_last): Extension<MayLast>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let Some(hook_from) = state.hook_from else { return Err(Failure::Observes) };
    if peer.is_the_pod(&state.addresses.borrow()) {
        return Ok(next.run(request).await);
    }
    let refused = match hook_from {
        HookFrom::Pod => Failure::NotThePod,
        HookFrom::Node if state.is_of_this_node(peer).await? => {
            may_last.allow();
            return Ok(next.run(request).await);
        }
        HookFrom::Node => Failure::NotTheNode,
    };
    tracing::debug!(?peer, "the hook was refused: its caller may not call it");
    Err(refused)
}

/// S10.
async fn only_the_pod(
    State(state): State<AppState>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = peer.is_the_pod(&state.addresses.borrow());
    if allowed {
        return next.run(request).await;
    }
    // Anybody can cause this line: at a level that is seldom on, it fills no disk.
    tracing::debug!(?peer, path = request.uri().path(), "refused: the request does not come from the pod");
    Failure::NotThePod.into_response()
}

/// Blocks until the drain has ended. A caller that goes away ends nothing.
async fn drain(State(state): State<AppState>) -> Result<Response, Failure> {
    let verdict = state.handle.drain().await?.verdict().await?;
    Ok(Json(&*verdict).into_response())
}

/// S5: the agent's own preStop hook. Answers at once.
async fn mark(State(state): State<AppState>) -> Result<&'static str, Failure> {
    state.handle.mark()?;
    Ok("marked\n")
}

async fn status(State(state): State<AppState>) -> Result<Response, Failure> {
    let look = state.look().await?;
    let connections = state.scrapes.connections(&look).await;
    Ok(Json(Status { connections, ..look.status }).into_response())
}

/// The courses of the last drains that have ended, oldest first; with `mode: observe`, what has been observed so far.
async fn report(State(state): State<AppState>) -> Result<Response, Failure> {
    let (reports, observation) = timeout(STUCK, state.handle.report()).await??;
    let mut answer = json!({ "reports": reports });
    if let (Some(observation), Some(fields)) = (observation, answer.as_object_mut()) {
        fields.insert(find::FIELD.to_owned(), json!(observation));
    }
    Ok(Json(answer).into_response())
}

async fn show_metrics(State(state): State<AppState>) -> Result<Response, Failure> {
    let text = state.scrapes.text(&state.look().await?).await;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

/// Liveness: the loop answers.
async fn healthz(State(state): State<AppState>) -> Result<&'static str, Failure> {
    state.look().await?;
    Ok("ok\n")
}

/// The kernel's evidence has been read.
async fn readyz(State(state): State<AppState>) -> Result<&'static str, Failure> {
    state.look().await?.evidence.map(|_| "ok\n").ok_or(Failure::Stuck)
}

/// The readiness of a server in the pod. Needs nothing of the loop.
async fn ready(State(state): State<AppState>, Path(name): Path<String>) -> Response {
    state.readiness.answer(&name).await
}

async fn level(State(state): State<AppState>) -> String {
    format!("{}\n", state.level.get())
}

async fn set_level(State(state): State<AppState>, body: axum::body::Bytes) -> Result<String, Failure> {
    let text = std::str::from_utf8(&body).map(str::trim).unwrap_or_default();
    if text.is_empty() || text.len() > LEVEL_LENGTH {
        return Err(Failure::Level("the body is to be a log level, such as `debug`".to_owned()));
    }
    state.level.set(text).map_err(|error| Failure::Level(error.to_string()))?;
    tracing::info!(level = text, "log level changed");
    Ok(format!("{text}\n"))
}
