//! The sockets, and one task for each connection.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::{Semaphore, watch},
    task::JoinHandle,
    time::timeout,
};

use super::peer::{MayLast, Peer};
use crate::config;

/// A client that has not sent its request's head by then is let go.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// What connections from outside the pod may take. Callers in the pod are never turned away.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many are open at once.
    pub connections: usize,
    /// After this time one is closed, whatever it does, unless it [may last](MayLast): nobody keeps the places of others, by
    /// reading no answer or by asking without end.
    pub time: Duration,
}

/// The agent's: nothing that it answers to the outside takes long.
pub(super) const AGENT: Limits = Limits { connections: 64, time: Duration::from_secs(10) };

/// The length of the accept queue.
const BACKLOG: i32 = 128;

/// The server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody else has the port.
    #[error(
        "{address} is in use: another process of the pod listens there; set server.address to a free port (and LASTSYN_SERVER_ADDRESS for the hook)"
    )]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot listen on {address}: {source}; server.address takes an address of the pod and a port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// The server, answering.
pub struct Server {
    port: u16,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    unix_socket: Option<PathBuf>,
}

/// Opens the sockets and begins to answer.
pub(crate) async fn start(
    config: &config::Server,
    router: &Router,
    addresses: watch::Receiver<Vec<IpAddr>>,
    limits: Limits,
) -> Result<Server, ServeError> {
    let listener = tcp(config.address)?;
    let port = listener.local_addr().map_or(config.address.port(), |address| address.port());
    let (stop, stopped) = watch::channel(false);
    let mut tasks = vec![tokio::spawn(serve_tcp(listener, router.clone(), addresses, limits, stopped.clone()))];
    let mut unix_socket = None;
    if let Some(path) = &config.socket {
        match unix(path).await {
            Ok(listener) => {
                tasks.push(tokio::spawn(serve_unix(listener, router.clone(), stopped)));
                unix_socket = Some(path.clone());
            }
            Err(error) => {
                let path = path.display();
                tracing::warn!(%path, %error, "no unix socket; the hook finds the agent over TCP");
            }
        }
    }
    Ok(Server { port, stop, tasks, unix_socket })
}

impl Server {
    /// The TCP port: the one of the configuration, or the kernel's choice where that is 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets answers under way leave, for at most `grace`, and closes the sockets.
    pub async fn stop(self, grace: Duration) {
        self.stop.send_replace(true);
        let all = async {
            for task in self.tasks {
                if let Err(error) = task.await {
                    tracing::debug!(%error, "a server task ended early");
                }
            }
        };
        if timeout(grace, all).await.is_err() {
            tracing::debug!("connections were still open when the agent stopped");
        }
        if let Some(path) = self.unix_socket {
            // What stays is swept by the next agent.
            drop(std::fs::remove_file(path));
        }
    }
}

/// Listens on TCP; on both families where the address is the IPv6 wildcard and the kernel has both.
fn tcp(address: SocketAddr) -> Result<TcpListener, ServeError> {
    match listen(address) {
        // No IPv6 in this kernel: the wildcard of both families is then that of IPv4.
        Err(error)
            if address.ip().is_unspecified()
                && matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) =>
        {
            listen((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        result => result,
    }
    .map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::InUse { address },
        _ => ServeError::Listen { address, source },
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restarted agent is to get its port back while connections of the one before linger.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Listens on a unix socket, in the place of one that a dead agent left.
async fn unix(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if tokio::net::UnixStream::connect(path).await.is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another agent answers there"));
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(path.parent().unwrap_or(path))?;
            UnixListener::bind(path)
        }
        result => result,
    }
}

async fn serve_tcp(
    listener: TcpListener,
    router: Router,
    addresses: watch::Receiver<Vec<IpAddr>>,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    let outside = Arc::new(Semaphore::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => break,
        };
        let Some((stream, address)) = keep(accepted).await else {
            continue;
        };
        let peer = Peer::Network(address, stream.local_addr().ok());
        let may_last = MayLast::default();
        let connection = answer(&graceful, stream, &router.clone().layer(Extension(may_last.clone())), peer);
        let inside = peer.is_the_pod(&addresses.borrow());
        if inside {
            tokio::spawn(connection);
        } else if let Ok(permit) = Arc::clone(&outside).try_acquire_owned() {
            tokio::spawn(async move {
                let mut connection = pin!(connection);
                if timeout(limits.time, &mut connection).await.is_err() {
                    if may_last.is_allowed() {
                        connection.await;
                    } else {
                        tracing::debug!(%address, "a connection from outside was closed: its time was over");
                    }
                }
                drop(permit);
            });
        } // Otherwise it is closed at once.
    }
    drop(listener);
    graceful.shutdown().await;
}

async fn serve_unix(listener: UnixListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => break,
        };
        if let Some((stream, _)) = keep(accepted).await {
            let router = router.clone().layer(Extension(MayLast::default()));
            tokio::spawn(answer(&graceful, stream, &router, Peer::UnixSocket));
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

/// A failed accept is the client's fault or want of file descriptors; neither ends the server.
async fn keep<T>(accepted: io::Result<T>) -> Option<T> {
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            tracing::debug!(%error, "accepting a connection failed");
            tokio::time::sleep(Duration::from_millis(10)).await;
            None
        }
    }
}

/// Answers one connection's requests.
fn answer<S>(graceful: &GracefulShutdown, stream: S, router: &Router, peer: Peer) -> impl Future<Output = ()> + use<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router.clone().layer(Extension(peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended with an error");
        }
    }
}
