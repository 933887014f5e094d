//! A server and a client of QUIC version 1, by a library in wide use.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    thread::JoinHandle,
};

use anyhow::{Context, Result, anyhow};
use quinn::{
    ClientConfig, Connection, Endpoint, Incoming, ServerConfig,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    },
};
use tokio::sync::{mpsc, oneshot};

use crate::{Host, host::runtime};

/// The name that the server's certificate is for.
const NAME: &str = "lab";

/// A server on a thread of its own in a host: it takes connections and all that is sent on them. Gone when dropped.
#[derive(Debug)]
pub struct QuicServer {
    certificate: CertificateDer<'static>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A client on a thread of its own in a host. It keeps its connections until it is dropped.
#[derive(Debug)]
pub struct QuicClient {
    orders: mpsc::UnboundedSender<(Order, oneshot::Sender<Result<()>>)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Connect(SocketAddr),
    Send,
}

// === impl QuicServer ===

impl QuicServer {
    /// Starts it, on both families. It takes connections when this returns.
    ///
    /// # Errors
    ///
    /// When the port is taken.
    pub fn start(host: &Host, port: u16) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
        let (stop, stopped) = oneshot::channel();
        let (listens, listening) = oneshot::channel();
        let serve = async move {
            match Endpoint::server(config, (Ipv6Addr::UNSPECIFIED, port).into()) {
                Ok(endpoint) => {
                    listens.send(Ok(())).ok();
                    tokio::select! {
                        () = take(&endpoint) => {}
                        _ = stopped => {}
                    }
                }
                Err(error) => drop(listens.send(Err(error))),
            }
        };
        let thread = host.spawn("QUIC server", move || runtime().block_on(serve))?;
        let role = host.role();
        listening.blocking_recv()?.with_context(|| format!("no QUIC server on port {port} of {role}"))?;
        Ok(Self { certificate, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for QuicServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        end(&mut self.thread);
    }
}

async fn take(endpoint: &Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(receive(incoming));
    }
}

async fn receive(incoming: Incoming) {
    let Ok(connection) = incoming.await else { return };
    while let Ok(mut stream) = connection.accept_uni().await {
        // What is sent is nobody's business.
        stream.read_to_end(1 << 16).await.ok();
    }
}

// === impl QuicClient ===

impl QuicClient {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(host: &Host, server: &QuicServer) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(server.certificate.clone())?;
        let config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let thread = host.spawn("QUIC client", move || runtime().block_on(carry_out(config, inbox)))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Opens one more connection, and keeps it. It stands when this returns.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub fn connect(&self, target: SocketAddr) -> Result<()> {
        self.order(Order::Connect(target))
    }

    /// Sends something on each connection. The server has it when this returns.
    ///
    /// # Errors
    ///
    /// When a connection has ended.
    pub fn send(&self) -> Result<()> {
        self.order(Order::Send)
    }

    fn order(&self, order: Order) -> Result<()> {
        let (done, carried_out) = oneshot::channel();
        self.orders.send((order, done)).map_err(|_unsent| anyhow!("the QUIC client has ended"))?;
        carried_out.blocking_recv().context("the QUIC client has ended")?
    }
}

impl Drop for QuicClient {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.orders = mpsc::unbounded_channel().0;
        end(&mut self.thread);
    }
}

async fn carry_out(config: ClientConfig, mut inbox: mpsc::UnboundedReceiver<(Order, oneshot::Sender<Result<()>>)>) {
    let mut kept = Vec::new();
    while let Some((order, done)) = inbox.recv().await {
        let outcome = match order {
            Order::Connect(target) => connect(&config, target).await.map(|open| kept.push(open)),
            Order::Send => send(&kept).await,
        };
        // Whoever gave the order may have gone.
        done.send(outcome).ok();
    }
}

/// Each connection has a socket of its own, as those of different clients have.
async fn connect(config: &ClientConfig, target: SocketAddr) -> Result<(Endpoint, Connection)> {
    let any: SocketAddr =
        if target.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let mut endpoint = Endpoint::client(any)?;
    endpoint.set_default_client_config(config.clone());
    let connection =
        endpoint.connect(target, NAME)?.await.with_context(|| format!("no QUIC connection to {target}"))?;
    Ok((endpoint, connection))
}

async fn send(connections: &[(Endpoint, Connection)]) -> Result<()> {
    for (_, connection) in connections {
        let mut stream = connection.open_uni().await?;
        stream.write_all(&[7; 100]).await?;
        stream.finish()?;
        stream.stopped().await?;
    }
    Ok(())
}

fn end(thread: &mut Option<JoinHandle<()>>) {
    if let Some(thread) = thread.take()
        && thread.join().is_err()
    {
        eprintln!("a QUIC thread panicked");
    }
}
