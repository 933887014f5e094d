//! What an agent needs of memory in a large cluster: 2,000 Services with 10,000 slices in its namespace, and 5,000 nodes, on
//! the real API server. A drain is held in it to its end, and the largest resident size of the agent since its start is
//! read; before and after, so that the drain's part is known.

use std::{fs, io::Write, thread, time::Duration};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::process::memory;
use crate::{
    AgentConfig,
    kubernetes::{Api, ApiTraffic, ClusterConfig, Scene},
    prove::results,
    wait::await_condition,
};

const SERVICES: usize = 2_000;
const SLICES_PER_SERVICE: usize = 5;
const ENDPOINTS_PER_SLICE: usize = 10;
const NODES: usize = 5_000;
/// Requests under way at once.
const LANES: usize = 4;
const HOOK: Duration = Duration::from_mins(2);
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

pub(super) fn measure() -> Result<()> {
    let scene = Scene::up(&ClusterConfig::default(), |service| service)?;
    let config = AgentConfig::default;
    // As it is shipped, and with so many nodes asked as there are: nearly all of them nobody answers for.
    let shipped = scene.workload(0, "shipped", config())?;
    let asking = scene.workload(1, "asking", config().env("LASTSYN_ROUTING_MAX_NODES", "10000"))?;
    // What the kube-proxies would make of it is not the question, and would take the machine's whole time.
    for node in scene.cluster.nodes() {
        node.proxy().freeze()?;
    }
    fill(scene.cluster.api())?;
    let mut rows = Vec::new();
    for (name, workload) in [("shipped", &shipped), ("asking 5,000 nodes", &asking)] {
        let traffic = ApiTraffic::count(workload.pod.host())?;
        let before = memory(workload.agent.process(), "VmHWM")?;
        let stopping = workload.delete()?;
        let mut after = before;
        await_condition("the hook's end", HOOK, || {
            match (memory(workload.agent.process(), "VmHWM"), stopping.holds()) {
                (Ok(kib), Ok(holds)) => {
                    after = after.max(kib);
                    (!holds).then_some(Ok(()))
                }
                (Err(error), _) | (_, Err(error)) => Some(Err(error)),
            }
        })??;
        let ended = stopping.finish(HOOK)?;
        rows.push(json!({
            "agent": name, "reason": ended.reason(), "hookMs": ended.verdict.get("durationMs"),
            "peakResidentKiBBefore": before, "peakResidentKiBAfter": after, "apiBytes": traffic.so_far()?.bytes,
        }));
    }
    let mut output = std::io::stdout().lock();
    for row in &rows {
        writeln!(output, "{row}")?;
    }
    let cluster = json!({
        "services": SERVICES, "slices": SERVICES * SLICES_PER_SERVICE, "endpointsPerSlice": ENDPOINTS_PER_SLICE,
        "nodes": NODES,
    });
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let text = format!("{}\n", json!({"cluster": cluster, "build": build, "results": rows}));
    let path = results().join("large-cluster.json");
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn fill(api: &Api) -> Result<()> {
    in_lanes(NODES, |number| {
        let address = format!("10.{}.{}.{}", 128 + number / 62_500, number / 250 % 250, number % 250 + 1);
        let name = format!("far-{number}");
        let labels = json!({"kubernetes.io/os": "linux", "kubernetes.io/hostname": name});
        let status = json!({"addresses": [{"type": "InternalIP", "address": address}]});
        api.post("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": labels}, "status": status}))
    })?;
    in_lanes(SERVICES, |number| {
        let spec = json!({"ports": [{"name": "http", "port": 80}]});
        let metadata = json!({"name": format!("many-{number}")});
        api.post("/api/v1/namespaces/default/services", &json!({"metadata": metadata, "spec": spec}))
    })?;
    in_lanes(SERVICES * SLICES_PER_SERVICE, |number| {
        let service = format!("many-{}", number / SLICES_PER_SERVICE);
        let endpoints: Vec<Value> = (0..ENDPOINTS_PER_SLICE)
            .map(|endpoint| {
                let address =
                    format!("10.{}.{}.{}", 200 + number / 5_000, number % 5_000 / 20, number % 20 * 10 + endpoint + 1);
                let conditions = json!({"ready": true, "serving": true, "terminating": false});
                json!({"addresses": [address], "conditions": conditions, "nodeName": format!("far-{}", number % NODES)})
            })
            .collect();
        let labels = json!({"kubernetes.io/service-name": service});
        api.post(
            SLICES,
            &json!({
                "metadata": {"name": format!("many-{number}"), "labels": labels}, "addressType": "IPv4",
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints,
            }),
        )
    })
}

fn in_lanes(count: usize, make: impl Fn(usize) -> Result<Value> + Sync) -> Result<()> {
    let make = &make;
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| scope.spawn(move || (lane..count).step_by(LANES).try_for_each(|number| make(number).map(drop))))
            .collect();
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(|_panic| Err(anyhow!("a lane panicked"))))
    })
}
