//! What a fence costs in a large cluster: many drains ask it at once. The fence and the API server are real, and so are three of
//! the nodes; the others answer as a calm kube-proxy does (`kubernetes::Crowd`), and each has its own watch.

use std::{collections::BTreeMap, fs, net::SocketAddr, sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use lastsyn::{
    core::listener::Family,
    fence::protocol::{Line, PATH, Question, Stands},
};
use serde_json::{Value, json};
use tokio::{net::TcpSocket, time::timeout};

use super::{distribution::Distribution, report::Report};
use crate::{
    AgentConfig,
    clock::monotonic_now,
    kubernetes::{Cluster, Counts, Crowd, Fence, Mode},
};

/// Nodes that are simulated, and drains at once.
const SIZES: [(u16, u16); 3] = [(297, 1), (297, 100), (997, 100)];
/// Rounds of each size. Between two of them the fence rests.
const ROUNDS: usize = 5;
/// For a round.
const PATIENCE: Duration = Duration::from_mins(1);
/// The kernel's clock ticks in a second (`USER_HZ`).
const HERTZ: u64 = 100;

/// What the fence's process and the cluster have spent so far.
#[derive(Clone, Copy, Debug)]
struct Spent {
    at: u64,
    processor_ms: u64,
    requests: u64,
    writes: u64,
    watch_bytes: u64,
}

pub(super) fn measure() -> Result<()> {
    let mut report = Report::default();
    let mut costs = BTreeMap::new();
    for (nodes, drains) in SIZES {
        let name = name(nodes, drains);
        let words = format!("from a question to the last of {} nodes, {drains} at once", nodes + 3);
        let (took, cost) = size(nodes, drains).with_context(|| format!("{} nodes, {drains} drains", nodes + 3))?;
        report.row(name, words, took);
        costs.insert(name, cost);
    }
    report.publish("fence-scale", &json!({ "targetMs": 4000, "costs": costs, "clock": "CLOCK_MONOTONIC" }))
}

fn name(nodes: u16, drains: u16) -> &'static str {
    match (nodes, drains) {
        (297, 1) => "300-nodes-1-drain",
        (297, _) => "300-nodes-100-drains",
        _ => "1000-nodes-100-drains",
    }
}

fn size(nodes: u16, drains: u16) -> Result<(Distribution, Value)> {
    let cluster = Cluster::up(Mode::Nftables)?;
    let crowd = Crowd::join(&cluster, nodes)?;
    list_callers(&cluster, drains)?;
    let config = AgentConfig::default()
        .env("LASTSYN_FENCE_MAX_NODES", (u32::from(nodes) + 3).to_string())
        .env("LASTSYN_LOG_LEVEL", "warn");
    let fence = Fence::with(&cluster, 1, "fence", &cluster.fence_access("fence")?, config)?;
    fence.await_rest()?;
    let pid = fence.process().pid().as_raw_nonzero().get();
    let at_rest = resident(pid, "VmRSS")?;
    let mut took = Distribution::default();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let before = Spent::now(pid, crowd.counts())?;
        let round = crowd.host().block_on(|| ask_all(fence.address(), drains, usize::from(nodes) + 3))?;
        let after = Spent::now(pid, crowd.counts())?;
        rounds.push(after.since(before, u64::from(nodes)));
        for nanos in round {
            took.add(nanos);
        }
        fence.await_rest()?;
    }
    let cost = json!({
        "nodes": nodes + 3, "drains": drains, "rounds": rounds,
        "residentAtRestKiB": at_rest, "residentAtMostKiB": resident(pid, "VmHWM")?,
    });
    eprintln!("{cost}");
    Ok((took, cost))
}

/// Lists the callers' addresses in slices of a Service, as endpoints that are going.
fn list_callers(cluster: &Cluster, drains: u16) -> Result<()> {
    let ports = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
    cluster.api().post(
        "/api/v1/namespaces/default/services",
        &json!({"metadata": {"name": "drains"}, "spec": {"ports": ports}}),
    )?;
    let endpoint = |number| json!({"addresses": [Crowd::pod(number).to_string()], "conditions": {"ready": false}});
    cluster.api().post(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        &json!({
            "metadata": {"name": "drains", "labels": {"kubernetes.io/service-name": "drains"}},
            "addressType": "IPv4", "ports": ports, "endpoints": (1..=drains).map(endpoint).collect::<Vec<_>>(),
        }),
    )?;
    Ok(())
}

async fn ask_all(fence: SocketAddr, drains: u16, nodes: usize) -> Result<Vec<i64>> {
    let asked = (1..=drains).map(|number| async move {
        timeout(PATIENCE, ask(fence, number, nodes)).await.context("a drain had no whole answer in time")?
    });
    join_all(asked).await.into_iter().collect()
}

/// One drain's question, from its own address: how long it took, in nanoseconds.
async fn ask(fence: SocketAddr, number: u16, nodes: usize) -> Result<i64> {
    let question = Question {
        families: Family::ALL.to_vec(),
        stand_ms: 2007,
        first_list_ms: 2000,
        pod: format!("default/drains-{number}"),
    };
    let socket = TcpSocket::new_v4()?;
    socket.bind((Crowd::pod(number), 0).into())?;
    let asked_at = monotonic_now();
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket.connect(fence).await?)).await?;
    let request = Request::post(PATH)
        .header(header::HOST, fence.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(serde_json::to_vec(&question)?)))?;
    let talk = async {
        let mut answer = sender.send_request(request).await?;
        let status = answer.status();
        let (mut text, mut confirmed, mut done) = (Vec::new(), 0, false);
        while let Some(frame) = answer.body_mut().frame().await {
            text.extend_from_slice(frame?.data_ref().map_or(&[], |data| data.as_ref()));
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                match serde_json::from_slice::<Line>(&line)? {
                    Line::Node(node) if node.state == Stands::Confirmed => confirmed += 1,
                    Line::Done => done = true,
                    _ => {}
                }
            }
        }
        ensure!(done, "status {status}: {}", String::from_utf8_lossy(&text));
        ensure!(confirmed == 2 * nodes, "{confirmed} confirmations of {nodes} nodes over two families");
        Ok(monotonic_now().saturating_sub(asked_at).cast_signed())
    };
    tokio::pin!(talk, connection);
    tokio::select! {
        took = &mut talk => took,
        ended = &mut connection => {
            ended?;
            talk.await
        }
    }
}

// === impl Spent ===

impl Spent {
    fn now(pid: i32, counts: &Counts) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the fence's process is gone")?;
        // Behind the name, which may hold anything: the state is the third field, the times are the 14th and 15th.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let time = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).context("no time");
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Ok(Self {
            at: monotonic_now(),
            processor_ms: (time(11)? + time(12)?) * 1000 / HERTZ,
            requests: count(&counts.requests),
            writes: count(&counts.writes),
            watch_bytes: count(&counts.watch_bytes),
        })
    }

    fn since(self, before: Self, nodes: u64) -> Value {
        let bytes = self.watch_bytes - before.watch_bytes;
        json!({
            "roundMs": (self.at - before.at) / 1_000_000,
            "processorMs": self.processor_ms - before.processor_ms,
            "requestsToNodes": self.requests - before.requests,
            "sliceWrites": self.writes - before.writes,
            "watchBytesPerNode": bytes.checked_div(nodes),
            "watchBytes": bytes,
        })
    }
}

/// A line of the process's status, in KiB.
fn resident(pid: i32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the fence's process is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).with_context(|| format!("no {name}"))
}
