//! The nodes' watches, whose bytes are counted and not read.

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use kube::{Client, client::Body};
use tokio::time::sleep;

use super::{super::api, read, state::State};

/// Reads all of them without end.
pub(super) async fn read_all(state: Arc<State>, kubeconfig: &Path, nodes: u16) -> Result<()> {
    let config = read(kubeconfig)?;
    for _ in 0..nodes {
        // A client, and so a connection, for each.
        let client = api::client(config.clone()).await?;
        tokio::task::spawn_local(count(client, Arc::clone(&state)));
    }
    std::future::pending().await
}

/// A node's watch, as kube-proxy has it.
async fn count(client: Client, state: Arc<State>) {
    const PATH: &str = "/apis/discovery.k8s.io/v1/endpointslices?watch=true&allowWatchBookmarks=true\
        &labelSelector=%21service.kubernetes.io%2Fheadless%2C%21service.kubernetes.io%2Fservice-proxy-name";
    loop {
        let request = Request::get(PATH).header("accept", "application/vnd.kubernetes.protobuf;stream=watch");
        if let Ok(request) = request.body(Body::empty())
            && let Ok(mut answer) = client.send(request).await
        {
            state.counts.watches.fetch_add(1, Ordering::Relaxed);
            while let Some(Ok(frame)) = answer.body_mut().frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                state.counts.watch_bytes.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::Relaxed);
            }
            state.counts.watches.fetch_sub(1, Ordering::Relaxed);
        }
        sleep(Duration::from_millis(100)).await;
    }
}
