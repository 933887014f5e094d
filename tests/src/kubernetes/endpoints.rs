//! What the EndpointSlices of a Service say.

use std::net::IpAddr;

use anyhow::Result;
use serde_json::Value;

use super::Api;

/// An address that a slice lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The name of its node.
    pub node: Option<String>,
    /// `conditions.ready`; absent means true.
    pub ready: bool,
    /// `conditions.serving`; absent means true.
    pub serving: bool,
    /// `conditions.terminating`; absent means false.
    pub terminating: bool,
}

/// The endpoints of a Service in all its slices.
pub(crate) fn of(api: &Api, service: &str) -> Result<Vec<Endpoint>> {
    let list = api.get(&format!(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
    ))?;
    let slices = list.get("items").and_then(Value::as_array).into_iter().flatten();
    Ok(slices
        .flat_map(|slice| slice.get("endpoints").and_then(Value::as_array).into_iter().flatten())
        .flat_map(read)
        .collect())
}

fn read(endpoint: &Value) -> Vec<Endpoint> {
    let condition = |name: &str, absent| {
        endpoint.pointer(&format!("/conditions/{name}")).and_then(Value::as_bool).unwrap_or(absent)
    };
    let addresses = endpoint.get("addresses").and_then(Value::as_array).into_iter().flatten();
    addresses
        .filter_map(|address| address.as_str()?.parse().ok())
        .map(|address| Endpoint {
            address,
            node: endpoint.get("nodeName").and_then(Value::as_str).map(str::to_owned),
            ready: condition("ready", true),
            serving: condition("serving", true),
            terminating: condition("terminating", false),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_conditions_have_their_meaning() {
        let listed = read(&json!({"addresses": ["10.0.0.1", "no address"], "conditions": {"serving": false}}));
        let expected =
            Endpoint { address: [10, 0, 0, 1].into(), node: None, ready: true, serving: false, terminating: false };
        assert_eq!(listed, [expected]);
    }
}
