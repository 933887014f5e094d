//! Nodes by the hundred, simulated: each has an address, answers as a kube-proxy's health server and `healthCheckNodePort` do,
//! and has a watch of its own at the API server, whose bytes are counted and not read. What they show goes by one more watch, at
//! the pace of a real kube-proxy that nothing is wrong with: a sync at once, and a second from one to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{
    Api as Typed, Client,
    api::{ListParams, WatchEvent, WatchParams},
    client::Body,
    config::Kubeconfig,
};
use rustix::{process::setpriority_process, thread::gettid};
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::LocalSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    Cluster,
    addresses::{CONTROL_PLANE_V4, CONTROL_PLANE_V6, hardware},
    api,
};
use crate::{End, Families, Host, Link, host::runtime, wait::await_condition};

/// kube-proxy's health server.
const HEALTH_PORT: u16 = 10_256;
/// From one sync to the next, at the least.
const MIN_SYNC: Duration = Duration::from_secs(1);
/// A sync of a small cluster.
const SYNC: Duration = Duration::from_millis(15);
/// The fence's Services.
const SERVICES: &str = "/api/v1/namespaces/default/services?labelSelector=lastsyn.dev%2Ffence";
/// The number of its wire, which no node has.
const NUMBER: u8 = 200;
/// For the nodes' watches to stand.
const SOON: Duration = Duration::from_mins(2);

/// The nodes. Dropped, they are gone.
#[derive(Debug)]
pub struct Crowd {
    host: Host,
    state: Arc<State>,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// What is known and counted.
#[derive(Debug, Default)]
struct State {
    /// The ready endpoints of a Service (by its name) on a node, as the API has them.
    written: Mutex<BTreeMap<(String, String), u64>>,
    /// The same as the nodes show them.
    shown: Mutex<BTreeMap<(String, String), u64>>,
    counts: Counts,
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

// === impl Crowd ===

impl Crowd {
    /// Adds so many nodes to a cluster.
    ///
    /// # Errors
    ///
    /// When the API server does not take them, or they do not come up.
    pub fn join(cluster: &Cluster, nodes: u16) -> Result<Self> {
        let host = cluster.lab().host("crowd")?;
        let own = (Ipv4Addr::new(10, 30, 255, 254), Ipv6Addr::new(0xfd00, 0x30, 0, 0, 0, 0, 1, 1));
        let outside = cluster.outside();
        Link {
            ends: [
                End {
                    host: outside,
                    interface: "crowd",
                    v4: (CONTROL_PLANE_V4, 32),
                    v6: (CONTROL_PLANE_V6, 128),
                    hardware: hardware(NUMBER, 0, 0),
                },
                End {
                    host: &host,
                    interface: "eth0",
                    v4: (own.0, 32),
                    v6: (own.1, 128),
                    hardware: hardware(NUMBER, 0, 1),
                },
            ],
            families: Families::Dual,
            mtu: 1500,
        }
        .make()?;
        let (v4, v6) = own;
        outside.ip(&format!(
            "route add {v4} dev crowd\nroute add {v6} dev crowd\n\
             route add 10.30.0.0/15 via {v4} dev crowd onlink\nroute add fd00:30::/64 via {v6} dev crowd onlink\n"
        ))?;
        // Every address of the ranges is its own.
        host.ip(&format!(
            "route add {CONTROL_PLANE_V4} dev eth0\nroute add {CONTROL_PLANE_V6} dev eth0\n\
             route add default via {CONTROL_PLANE_V4} dev eth0 onlink\nroute add default via {CONTROL_PLANE_V6} dev eth0 onlink\n\
             route add local 10.30.0.0/15 dev lo\nroute add local fd00:30::/64 dev lo\n"
        ))?;
        for node in 0..nodes {
            register(cluster, node)?;
        }
        let state = Arc::new(State::default());
        let kubeconfig = cluster.kubeconfig();
        let read = move |state, kubeconfig: PathBuf| async move {
            // What nobody waits for stands back: on real nodes it would cost the ones that answer nothing.
            setpriority_process(Some(gettid()), 10)?;
            read_watches(state, &kubeconfig, nodes).await
        };
        let answer = |state, kubeconfig: PathBuf| async move { answer(state, &kubeconfig).await };
        let threads = vec![
            spawn(&host, "crowd's watches", (&state, kubeconfig), read)?,
            spawn(&host, "crowd", (&state, kubeconfig), answer)?,
        ];
        let crowd = Self { host, state, threads };
        await_condition("the nodes' watches", SOON, || {
            crowd.counts().watches.load(Ordering::Relaxed) >= u64::from(nodes)
        })?;
        Ok(crowd)
    }

    /// Where addresses of [`pod`](Self::pod) are its own.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// An address of a pod that is on none of the nodes.
    pub fn pod(number: u16) -> Ipv4Addr {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(10, 31, high, low)
    }

    /// What has been counted so far.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for (end, thread) in self.threads.drain(..) {
            end.send(()).ok(); // it may have ended with an error
            if thread.join().is_err() {
                eprintln!("a thread of the crowd panicked");
            }
        }
    }
}

/// Works in a thread of its own until told to end.
fn spawn<W: Future<Output = Result<()>>>(
    host: &Host,
    name: &str,
    (state, kubeconfig): (&Arc<State>, &Path),
    work: impl FnOnce(Arc<State>, PathBuf) -> W + Send + 'static,
) -> Result<(oneshot::Sender<()>, JoinHandle<()>)> {
    let (end, ended) = oneshot::channel();
    let (state, kubeconfig) = (Arc::clone(state), kubeconfig.to_owned());
    let thread = host.spawn(name, move || {
        runtime().block_on(LocalSet::new().run_until(async {
            tokio::select! {
                worked = work(state, kubeconfig) => if let Err(error) = worked {
                    eprintln!("the crowd: {error:#}");
                },
                _ = ended => {}
            }
        }));
    })?;
    Ok((end, thread))
}

fn name(node: u16) -> String {
    format!("crowd-{node}")
}

fn addresses(node: u16) -> [IpAddr; 2] {
    let [high, low] = (node + 1).to_be_bytes();
    [Ipv4Addr::new(10, 30, high, low).into(), Ipv6Addr::new(0xfd00, 0x30, 0, 0, 0, 0, 0, node + 1).into()]
}

fn node_of(address: IpAddr) -> Option<u16> {
    let number = match address.to_canonical() {
        IpAddr::V4(address) => u16::from_be_bytes([address.octets()[2], address.octets()[3]]),
        IpAddr::V6(address) => *address.segments().last()?,
    };
    number.checked_sub(1)
}

fn register(cluster: &Cluster, node: u16) -> Result<()> {
    let name = name(node);
    cluster
        .api()
        .post("/api/v1/nodes", &json!({"metadata": {"name": name, "labels": {"kubernetes.io/os": "linux"}}}))?;
    let addresses = addresses(node).map(|address| json!({"type": "InternalIP", "address": address.to_string()}));
    cluster.api().patch(&format!("/api/v1/nodes/{name}/status"), &json!({"status": {"addresses": addresses}}))?;
    Ok(())
}

fn read(kubeconfig: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(kubeconfig).with_context(|| format!("{} cannot be read", kubeconfig.display()))
}

async fn read_watches(state: Arc<State>, kubeconfig: &Path, nodes: u16) -> Result<()> {
    let config = read(kubeconfig)?;
    for _ in 0..nodes {
        // A client, and so a connection, for each.
        let client = api::client(config.clone()).await?;
        tokio::task::spawn_local(count(client, Arc::clone(&state)));
    }
    std::future::pending().await
}

async fn answer(state: Arc<State>, kubeconfig: &Path) -> Result<()> {
    let client = api::client(read(kubeconfig)?).await?;
    tokio::task::spawn_local(serve(TcpListener::bind(("::", HEALTH_PORT)).await?, Arc::clone(&state), None));
    tokio::try_join!(ports(&client, &state), watch(client.clone(), &state))?;
    Ok(())
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

impl State {
    /// Takes in what is written, and tells of which Service.
    fn take(&self, slice: &EndpointSlice) -> Option<String> {
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
    fn show(&self, service: &str) {
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

    fn answer(&self, service: Option<&str>, at: SocketAddr) -> String {
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
