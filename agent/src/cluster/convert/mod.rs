//! Kubernetes' objects as the core takes them in. Pure and total: whatever an API server sends becomes something, or is
//! left out and counted. Nothing here decides; W1 to W8 are the core's.

mod node;
pub mod pod;
mod service;
mod slice;

pub use node::{NodeTarget, is_ours as node_is_ours, node, target as node_target};
pub use pod::{paths as pod_paths, read as pod_read};
pub use service::service;
pub use slice::{slice, without_endpoints};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::core::cluster::ResourceVersion;

/// The label that joins a slice to its Service (`discovery/v1`, `LabelServiceName`).
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Set by the EndpointSlice controller where the Service has no cluster IP (`v1.IsHeadlessService`).
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Names another proxy than kube-proxy (`pkg/proxy/apis`, `LabelServiceProxyName`).
const PROXY_NAME: &str = "service.kubernetes.io/service-proxy-name";

/// What was made of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted<T> {
    /// It.
    pub value: T,
    /// How many parts of it could not be read and were left out: addresses, ports.
    pub left_out: u32,
}

/// An object's version; empty where it has none, which no API server sends.
pub fn version(metadata: &ObjectMeta) -> ResourceVersion {
    ResourceVersion(metadata.resource_version.clone().unwrap_or_default())
}

/// An object's name.
pub fn name(metadata: &ObjectMeta) -> Option<&str> {
    metadata.name.as_deref().filter(|name| !name.is_empty())
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests;
