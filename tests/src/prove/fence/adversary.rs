//! What goes wrong meanwhile: a kube-proxy stands still, dies, starts without the API server, or hears of slices late or by a new list, while
//! other Services change all the time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::json;

use crate::{
    clock::monotonic_now,
    kubernetes::Cluster,
    prove::{Dice, wait_until},
};

/// The longest that something stays wrong.
const LONGEST: Duration = Duration::from_secs(5);
/// Changes of another Service's slice, a second.
const CHURN: u64 = 20;

/// Does wrong to one node after the other until it is told to end. All is right again when it returns.
///
/// # Errors
///
/// When a fault cannot be brought about or taken back.
pub(super) fn harass(cluster: &Cluster, seed: u64, end: &AtomicBool) -> Result<()> {
    let mut dice = Dice::seeded(seed);
    while !end.load(Ordering::Relaxed) {
        let node = cluster.nodes().get(dice.below(cluster.nodes().len())).context("a cluster has nodes")?;
        let length = dice.within(LONGEST);
        let began = monotonic_now();
        match dice.below(6) {
            0 => {
                node.proxy().freeze()?;
                wait_until(began, length)?;
                node.proxy().thaw()?;
            }
            1 => {
                node.proxy().kill()?;
                wait_until(began, length / 4)?;
                node.proxy().restart()?;
                wait_until(began, length)?;
            }
            2 => {
                node.cut()?;
                node.proxy().kill()?;
                node.proxy().restart()?;
                wait_until(began, length)?;
                node.heal()?;
            }
            3 => {
                node.cut()?;
                wait_until(began, length)?;
                node.heal()?;
            }
            fault => {
                let proxy = cluster.watch_proxy()?;
                proxy.stall("endpointslices");
                wait_until(began, length)?;
                // What was held back comes in its order, or as a list in any.
                if fault == 4 { proxy.release() } else { proxy.expire("endpointslices") }
            }
        }
        let calm = dice.within(LONGEST / 2);
        wait_until(monotonic_now(), calm)?;
    }
    Ok(())
}

/// Changes the slice of another Service, 20 times a second, until it is told to end.
///
/// # Errors
///
/// When the API server does not take a change.
pub(super) fn churn(cluster: &Cluster, end: &AtomicBool) -> Result<()> {
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let endpoints =
        |number: u64| json!([{"addresses": [format!("10.199.0.{}", number % 200 + 1)], "conditions": {"ready": true}}]);
    cluster.api().post(
        "/api/v1/namespaces/default/services",
        &json!({"metadata": {"name": "churns"}, "spec": {"ports": [{"name": "http", "protocol": "TCP", "port": 80}]}}),
    )?;
    cluster.api().post(
        slices,
        &json!({
            "metadata": {"name": "churns", "labels": {"kubernetes.io/service-name": "churns"}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
            "endpoints": endpoints(0),
        }),
    )?;
    let began = monotonic_now();
    for number in 1.. {
        if end.load(Ordering::Relaxed) {
            break;
        }
        cluster
            .api()
            .patch(&format!("{slices}/churns"), &json!({"endpoints": endpoints(number)}))
            .context("the other Service's change")?;
        wait_until(began, Duration::from_millis(number * 1000 / CHURN))?;
    }
    Ok(())
}
