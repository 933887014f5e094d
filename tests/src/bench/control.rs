//! A server that only waits, to tell the machine's lateness from the agent's.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::oneshot,
    time::sleep,
};

use crate::{Host, host::runtime};

/// Where it answers in its host.
pub(super) const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 19_481));

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";

/// The server, on a thread of its own. It answers one call after the other, each after the same time, as the agent does
/// with its one thread and the same timers.
#[derive(Debug)]
pub(super) struct Control {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<Result<()>>>,
}

// === impl Control ===

impl Control {
    /// Starts it. It listens when this returns.
    ///
    /// # Errors
    ///
    /// When its port is taken.
    pub(super) fn start(host: &Host, wait: Duration) -> Result<Self> {
        let listener = host.run(|| std::net::TcpListener::bind(ADDRESS)).context("no control server")?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = oneshot::channel();
        let thread = host.spawn("control", move || {
            runtime().block_on(async {
                tokio::select! {
                    ended = serve(listener, wait) => ended,
                    _ = stopped => Ok(()),
                }
            })
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(thread::JoinHandle::join);
        if let Some(Err(error)) = ended.map(|ended| ended.unwrap_or_else(|_panic| Err(anyhow!("it panicked")))) {
            eprintln!("the control server failed: {error:#}");
        }
    }
}

async fn serve(listener: std::net::TcpListener, wait: Duration) -> Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (mut connection, _) = listener.accept().await?;
        let mut request = [0; 1024];
        if connection.read(&mut request).await? > 0 {
            sleep(wait).await;
            connection.write_all(ANSWER).await?;
            connection.shutdown().await?;
        }
    }
}
