//! What the nodes answer, at the pace of a kube-proxy that nothing is wrong with.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api as Typed, Client,
    api::{ListParams, WatchEvent, WatchParams},
};
use tokio::{
    net::TcpListener,
    time::{Instant, sleep, sleep_until},
};

use super::{super::api, read, state::State};

/// kube-proxy's health server.
const HEALTH_PORT: u16 = 10_256;
/// From one sync to the next, at the least.
const MIN_SYNC: Duration = Duration::from_secs(1);
/// A sync of a small cluster.
const SYNC: Duration = Duration::from_millis(15);
/// The fence's Services.
const SERVICES: &str = "/api/v1/namespaces/default/services?labelSelector=lastsyn.dev%2Ffence";

/// Answers without end.
pub(super) async fn give(state: Arc<State>, kubeconfig: &Path) -> Result<()> {
    let client = api::client(read(kubeconfig)?).await?;
    tokio::task::spawn_local(serve(TcpListener::bind(("::", HEALTH_PORT)).await?, Arc::clone(&state), None));
    tokio::try_join!(ports(&client, &state), watch(client.clone(), &state))?;
    Ok(())
}

/// Listens at the `healthCheckNodePort` of every Service of a fence.
async fn ports(client: &Client, state: &Arc<State>) -> Result<()> {
    let mut known = BTreeSet::new();
    loop {
        let request = Request::get(SERVICES).body(Vec::new())?;
        let services: serde_json::Value = client.request(request).await?;
        for service in services.get("items").and_then(|items| items.as_array()).into_iter().flatten() {
            let port = service.pointer("/spec/healthCheckNodePort").and_then(serde_json::Value::as_u64);
            let name = service.pointer("/metadata/name").and_then(serde_json::Value::as_str);
            let (Some(port), Some(name)) = (port.and_then(|port| u16::try_from(port).ok()), name) else { continue };
            if known.insert(port) {
                let listener = TcpListener::bind(("::", port)).await.with_context(|| format!("port {port}"))?;
                tokio::task::spawn_local(serve(listener, Arc::clone(state), Some(name.to_owned())));
            }
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Follows the fence's slices, and shows them at kube-proxy's pace.
async fn watch(client: Client, state: &Arc<State>) -> Result<()> {
    let slices = Typed::<EndpointSlice>::namespaced(client, "default");
    let parameters = ListParams::default().labels("endpointslice.kubernetes.io/managed-by=fence.lastsyn.dev");
    let list = slices.list(&parameters).await?;
    for slice in &list.items {
        state.take(slice);
    }
    let version = list.metadata.resource_version.unwrap_or_default();
    let watched =
        WatchParams::default().labels("endpointslice.kubernetes.io/managed-by=fence.lastsyn.dev").timeout(290);
    let mut events = slices.watch(&watched, &version).await?.boxed();
    // A kube-proxy has a proxier for each family, and a runner for each of these (`BoundedFrequencyRunner`).
    let mut runners: BTreeMap<String, Runner> = BTreeMap::new();
    loop {
        let until = runners.values().filter_map(|runner| runner.due).min();
        let synced = async move {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = events.try_next() => match event? {
                Some(WatchEvent::Added(slice) | WatchEvent::Modified(slice)) => {
                    state.counts.writes.fetch_add(1, Ordering::Relaxed);
                    if let Some(service) = state.take(&slice) {
                        let runner = runners.entry(service).or_default();
                        let now = Instant::now();
                        runner.due.get_or_insert(runner.next.unwrap_or(now).max(now) + SYNC);
                    }
                }
                Some(_) => {}
                None => anyhow::bail!("the watch ended"),
            },
            () = synced => for (service, runner) in &mut runners {
                if runner.due.is_some_and(|due| due <= Instant::now()) {
                    state.show(service);
                    *runner = Runner { due: None, next: Some(Instant::now() + MIN_SYNC) };
                }
            }
        }
    }
}

/// When one family's rules are written next, and when they may be.
#[derive(Clone, Copy, Debug, Default)]
struct Runner {
    due: Option<Instant>,
    next: Option<Instant>,
}

async fn serve(listener: TcpListener, state: Arc<State>, service: Option<String>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (state, service) = (Arc::clone(&state), service.clone());
        let Ok(at) = stream.local_addr() else { continue };
        tokio::task::spawn_local(async move {
            let answer = service_fn(move |_request: Request<Incoming>| {
                let body = state.answer(service.as_deref(), at);
                let answer =
                    Response::builder().header("content-type", "application/json").body(Full::new(Bytes::from(body)));
                std::future::ready(answer)
            });
            // The fence closes it.
            http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await.ok();
        });
    }
}
