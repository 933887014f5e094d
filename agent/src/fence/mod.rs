//! The routing fence (C4): one writer for the whole cluster, that shows for every node whether its rules have everything that
//! was written by some moment.
//!
//! | what | where |
//! | --- | --- |
//! | the decision: when to write, and what a sight proves. Pure | [`rounds`] |
//! | a node's value, and as EndpointSlices. Pure | [`generation`], [`markers`] |
//! | what an agent has been told. Pure | `progress`, [`protocol`] |
//! | how much may be asked. Pure | `callers` |
//! | who may ask, by what the API has of him | `door`, `clients` |
//! | what a pod may see through it, without a token | [`window`] |
//! | the Services and slices in the API | `store` |
//! | who of several replicas writes | `lease` |
//! | the list of nodes | `nodes` |
//! | what a node's kube-proxy shows | `sight` |
//! | the loop, and one time of serving | `work`, `session` |
//! | HTTP, status, metrics | `server`, [`look`], `metrics` |
//! | the agent's side | [`client`] |
//!
//! Nothing is written and no node is asked while no agent asks. `docs/fence.md` tells how it works and what it proves.

mod callers;
pub mod client;
mod clients;
mod desk;
mod door;
pub mod generation;
mod lease;
pub mod look;
pub mod markers;
mod metrics;
mod nodes;
mod progress;
pub mod protocol;
pub mod rounds;
mod server;
mod session;
mod sight;
mod store;
pub mod window;
mod work;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};

use crate::{
    cluster::{Access, AccessError, namespace},
    config::{self, Config},
    server::{Limits, ServeError, listen},
};

/// For how long a node that is ready waits for others, so that one write serves them all.
const GATHER: Duration = Duration::from_millis(150);

/// How many requests may wait for the loop.
const WAITING: usize = 256;

/// How many connections may be open at once, and for how long: an answer lasts as long as a drain.
const LIMITS: Limits = Limits { connections: 4096, time: Duration::from_mins(16) };

/// How long answers have to be carried away when the fence stops.
const GOODBYE: Duration = Duration::from_millis(200);

/// How long the fence has to give its Lease back.
const FAREWELL: Duration = Duration::from_secs(2);

/// The fence cannot run.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// There is no cluster.
    #[error(
        "there is neither a service account nor KUBECONFIG: the fence runs in a cluster, as a Deployment of its own"
    )]
    NoCluster,
    /// There is no way to the API server.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The server cannot listen.
    #[error("{0}; the fence's address is fence.address")]
    Serve(#[from] ServeError),
    /// Signals cannot be awaited.
    #[error("cannot wait for SIGTERM: {0}")]
    Signal(#[source] std::io::Error),
}

/// Runs the fence until it is asked to stop.
///
/// # Errors
/// If it cannot begin. Once it runs, whatever fails is told to who asks.
pub async fn run(config: Config) -> Result<(), FenceError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(FenceError::Signal)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(FenceError::Signal)?;
    let access = Access::by_environment().ok_or(FenceError::NoCluster)?;
    let client = access.client(Duration::from_secs(2)).await?;
    let namespace = namespace(&config.pod, &client);
    drop(client);

    let metrics = Arc::new(metrics::Metrics::new());
    let (requests, received) = mpsc::channel(WAITING);
    let callers = callers::Callers::default();
    let clients = Arc::new(clients::Clients::new(access.clone()));
    let desk = server::Desk {
        requests: requests.clone(),
        metrics: Arc::clone(&metrics),
        callers: callers.clone(),
        door: Arc::new(door::Door::new(config.fence.callers, Arc::clone(&clients))),
    };
    let window = window::Window::new(clients, callers.clone());
    let (_nobody, inside) = watch::channel(Vec::new());
    let address = config::Server { address: config.fence.address, socket: None, ..config::Server::default() };
    let server = listen::start(&address, &server::router(desk).merge(window.router()), inside, LIMITS).await?;

    let identity = identity(&config);
    let own = config.pod.ips.first().map(|ip| SocketAddr::new(*ip, config.fence.address.port()).to_string());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = %config.fence.address,
        api = access.words(),
        namespace,
        identity,
        "the fence answers"
    );
    let lease = lease::Lease::new(identity, own.unwrap_or_default(), namespace.clone());
    let pace = rounds::Pace { spacing: config.fence.spacing, gather: GATHER };
    let settings = session::Settings::of(&config, namespace);
    let work = work::Work::new(access, lease, settings, pace, (callers, metrics));
    let mut working = tokio::spawn(work.run(received));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        ended = &mut working => {
            tracing::error!(?ended, "the fence's loop ended early");
            return Ok(());
        }
    }
    // Nobody takes it if the loop has ended.
    drop(requests.send(desk::Request::Stop).await);
    if tokio::time::timeout(FAREWELL, working).await.is_err() {
        tracing::warn!("the fence's Lease was not given back in time; it expires");
    }
    server.stop(GOODBYE).await;
    Ok(())
}

/// The pod's name, or one that nobody else has.
fn identity(config: &Config) -> String {
    match config.pod.name.as_str() {
        "" => format!("fence-{:016x}", fastrand::u64(..)),
        name => format!("{name}-{:08x}", fastrand::u32(..)),
    }
}
