//! A small server of the lab's own, for what a finished product does not let itself be told: how long its backlog is, and
//! when to accept.

use std::{
    future::poll_fn,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    task::Poll,
    thread::JoinHandle,
};

use anyhow::{Context, Result, anyhow};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{Host, haproxy::Bind, host::runtime};

/// A request's head is not longer.
const LONGEST_HEAD: usize = 8192;

/// What a server is like.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What it answers.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Its sockets.
    pub bind: Bind,
    /// How many connections can wait to be accepted. The kernel lets one more in.
    pub backlog: i32,
    /// Whether it accepts from the start.
    pub accept: bool,
}

/// A server on a thread of its own in a host. Dropped, it closes its listeners and connections.
#[derive(Debug)]
pub struct Server {
    orders: mpsc::UnboundedSender<(Order, oneshot::Sender<()>)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Accept(bool),
    Close,
}

// === impl ServerConfig ===

impl Default for ServerConfig {
    /// Port 80 on both families with one dual-stack socket, a backlog of 128, accepting, named `server`.
    fn default() -> Self {
        Self { name: "server".to_owned(), port: 80, bind: Bind::Dual, backlog: 128, accept: true }
    }
}

// === impl Server ===

impl Server {
    /// Starts it. It listens when this returns.
    ///
    /// # Errors
    ///
    /// When the port is taken.
    pub fn start(host: &Host, config: ServerConfig) -> Result<Self> {
        let listeners = host
            .run(|| listen(&config))
            .with_context(|| format!("no server on port {} of {}", config.port, host.role()))?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let thread = host.spawn("server", move || runtime().block_on(serve(listeners, config, inbox)))?;
        Ok(Self { orders, thread: Some(thread) })
    }

    /// Takes no connection from the backlog any more. Connections that it has go on.
    ///
    /// # Errors
    ///
    /// When the server has ended, which it does not by itself.
    pub fn stop_accepting(&self) -> Result<()> {
        self.order(Order::Accept(false))
    }

    /// Accepts, also what waits.
    ///
    /// # Errors
    ///
    /// When the server has ended, which it does not by itself.
    pub fn accept(&self) -> Result<()> {
        self.order(Order::Accept(true))
    }

    /// Closes the listeners, upon which the kernel resets what waits in their backlogs and refuses new connections.
    /// Connections that were accepted go on.
    ///
    /// # Errors
    ///
    /// When the server has ended, which it does not by itself.
    pub fn close(&self) -> Result<()> {
        self.order(Order::Close)
    }

    /// Gives an order and waits until it is carried out.
    fn order(&self, order: Order) -> Result<()> {
        let (done, carried_out) = oneshot::channel();
        self.orders.send((order, done)).map_err(|_unsent| anyhow!("the server has ended"))?;
        carried_out.blocking_recv().context("the server has ended")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.orders = mpsc::unbounded_channel().0;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the server's thread panicked");
        }
    }
}

fn listen(config: &ServerConfig) -> Result<Vec<std::net::TcpListener>> {
    let any_v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, config.port));
    let any_v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, config.port));
    let addresses = match config.bind {
        Bind::Separate => vec![any_v4, any_v6],
        Bind::Dual | Bind::V6 => vec![any_v6],
        Bind::V4 => vec![any_v4],
    };
    addresses
        .into_iter()
        .map(|address| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                socket.set_only_v6(config.bind != Bind::Dual)?;
            }
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(config.backlog)?;
            Ok(socket.into())
        })
        .collect()
}

async fn serve(
    listeners: Vec<std::net::TcpListener>,
    config: ServerConfig,
    mut inbox: mpsc::UnboundedReceiver<(Order, oneshot::Sender<()>)>,
) {
    let adopted: io::Result<Vec<_>> = listeners.into_iter().map(TcpListener::from_std).collect();
    let mut listeners = match adopted {
        Ok(listeners) => listeners,
        Err(error) => return eprintln!("the server's sockets cannot be polled: {error}"),
    };
    let mut accepting = config.accept;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            order = inbox.recv() => match order {
                None => return,
                Some((order, done)) => {
                    match order {
                        Order::Accept(accept) => accepting = accept,
                        Order::Close => listeners.clear(),
                    }
                    done.send(()).ok();
                }
            },
            accepted = accept_any(&listeners), if accepting && !listeners.is_empty() => {
                // A connection that was reset while it waited is no failure of the server.
                if let Ok(connection) = accepted {
                    connections.spawn(answer(connection, config.name.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept_any(listeners: &[TcpListener]) -> io::Result<TcpStream> {
    poll_fn(|context| {
        for listener in listeners {
            if let Poll::Ready(accepted) = listener.poll_accept(context) {
                return Poll::Ready(accepted.map(|(connection, _)| connection));
            }
        }
        Poll::Pending
    })
    .await
}

/// Answers requests until the client has no more, or has asked with HTTP/1.0.
async fn answer(mut connection: TcpStream, name: String) -> io::Result<()> {
    let length = name.len();
    let response = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{name}");
    while let Some(head) = read_head(&mut connection).await? {
        connection.write_all(response.as_bytes()).await?;
        if String::from_utf8_lossy(&head).lines().next().is_none_or(|line| !line.ends_with("HTTP/1.1")) {
            break;
        }
    }
    connection.shutdown().await
}

async fn read_head(connection: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || connection.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}
