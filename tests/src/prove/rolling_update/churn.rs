//! Writes to slices that list none of the pods.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::Result;
use serde_json::json;

use crate::{clock::monotonic_now, kubernetes::Api, prove::wait_until};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const FAMILIES: [(&str, &str, &str); 2] =
    [("unrelated-v4", "IPv4", "192.0.2.1"), ("unrelated-v6", "IPv6", "2001:db8::1")];

/// Writes so many slices a second, of each family in turn, until it is told to stop. Returns how many it wrote.
pub(super) fn write_unrelated(api: &Api, per_second: u32, stop: &AtomicBool) -> Result<u32> {
    for (name, family, address) in FAMILIES {
        api.post(
            SLICES,
            &json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "unrelated"}},
                "addressType": family,
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
                "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            }),
        )?;
    }
    let between = Duration::from_secs(1) / per_second.max(1);
    let begun = monotonic_now();
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        for (name, _, address) in FAMILIES {
            // It goes on and off, as an endpoint of some other Service does.
            let endpoint = json!({"addresses": [address], "conditions": {"ready": written % 4 < 2}});
            api.patch(&format!("{SLICES}/{name}"), &json!({"endpoints": [endpoint]}))?;
            written += 1;
            wait_until(begun, between * written)?;
        }
    }
    Ok(written)
}
