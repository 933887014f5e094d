//! What the nodes know, show, and have counted.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

use super::{name, node_of};

/// What is known and counted.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The ready endpoints of a Service (by its name) on a node, as the API has them.
    written: Mutex<BTreeMap<(String, String), u64>>,
    /// The same as the nodes show them.
    shown: Mutex<BTreeMap<(String, String), u64>>,
    pub(super) counts: Counts,
}

/// What has been counted so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests that the nodes answered.
    pub requests: AtomicU64,
    /// Bytes that all nodes' watches brought.
    pub watch_bytes: AtomicU64,
    /// Writes of the fence's slices.
    pub writes: AtomicU64,
    /// Watches that stand.
    pub watches: AtomicU64,
}

// === impl State ===

impl State {
    /// Takes in what is written, and tells of which Service.
    pub(super) fn take(&self, slice: &EndpointSlice) -> Option<String> {
        let service = slice.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/service-name"))?;
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for endpoint in &slice.endpoints {
            *counts.entry(endpoint.node_name.as_deref().unwrap_or_default()).or_default() += 1;
        }
        let mut written = self.written();
        for (node, count) in counts {
            written.insert((service.clone(), node.to_owned()), count);
        }
        Some(service.clone())
    }

    /// Shows what is written of a Service.
    pub(super) fn show(&self, service: &str) {
        let written: Vec<_> = self
            .written()
            .iter()
            .filter(|((of, _), _)| of == service)
            .map(|(key, count)| (key.clone(), *count))
            .collect();
        self.shown().extend(written);
    }

    fn written(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<(String, String), u64>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answer(&self, service: Option<&str>, at: SocketAddr) -> String {
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        match service {
            None => {
                let time = "2026-01-01T00:00:00.000000001Z";
                let family = json!({"lastUpdated": time, "healthy": true});
                let status = json!({"IPv4": family, "IPv6": family});
                json!({"lastUpdated": time, "currentTime": time, "healthy": true, "status": status}).to_string()
            }
            Some(service) => {
                let node = node_of(at.ip()).map(name).unwrap_or_default();
                let count = self.shown().get(&(service.to_owned(), node)).copied().unwrap_or(0);
                let of = json!({"namespace": "default", "name": service});
                json!({"service": of, "localEndpoints": count, "serviceProxyHealthy": true}).to_string()
            }
        }
    }
}
