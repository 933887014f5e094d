//! One connection to one health server, kept open from request to request.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    task::JoinHandle,
};

use super::LONGEST_BODY;
use crate::core::cluster::ConnectionId;

/// How long a connection may be silent before the kernel asks whether the other end still is there, and how often and
/// how many times it asks.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// The longest head of an answer, and of whatever precedes it.
const LONGEST_HEAD: usize = 16 << 10;

/// An open connection. Dropping it closes it.
pub struct Connection {
    sender: http1::SendRequest<Empty<Bytes>>,
    driver: JoinHandle<()>,
    host: String,
    read: Arc<AtomicUsize>,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub code: StatusCode,
    /// The body, at most [`LONGEST_BODY`] bytes.
    pub body: Bytes,
}

/// Why there was no complete answer. The connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// It broke: closed or reset.
    #[error("the connection broke: {0}")]
    Broken(#[source] hyper::Error),
    /// What came is not HTTP.
    #[error("what answers does not speak HTTP; is it TLS?")]
    NotHttp,
    /// The answer is longer than 64 KiB.
    #[error("the answer is longer than {LONGEST_BODY} bytes")]
    TooLong,
}

/// Connects.
///
/// # Errors
/// Those of the socket. There is no time-out: the caller drops the future.
pub async fn connect(address: SocketAddr) -> io::Result<Connection> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (idle, every, times) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(every).with_retries(times);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    let read = Arc::new(AtomicUsize::new(0));
    let bounded = Bounded { stream, read: Arc::clone(&read) };
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(LONGEST_HEAD)
        .handshake::<_, Empty<Bytes>>(TokioIo::new(bounded))
        .await
        .map_err(io::Error::other)?;
    let driver = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::trace!(%error, "a connection to a health server ended");
        }
    });
    Ok(Connection { sender, driver, host: address.to_string(), read })
}

impl Connection {
    /// Asks, and reads the whole answer. There is no time-out: who wants to go on waiting for the same answer keeps the
    /// future, and who drops it gives the connection up.
    ///
    /// # Errors
    /// See [`Lost`].
    pub async fn ask(&mut self, path: &'static str) -> Result<Reply, Lost> {
        self.read.store(0, Ordering::Relaxed);
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = hyper::Uri::from_static(path);
        if let Ok(host) = header::HeaderValue::from_str(&self.host) {
            request.headers_mut().insert(header::HOST, host);
        }
        request.headers_mut().insert(header::USER_AGENT, header::HeaderValue::from_static("lastsyn"));
        self.sender.ready().await.map_err(lost)?;
        let (head, body) = self.sender.send_request(request).await.map_err(lost)?.into_parts();
        match Limited::new(body, LONGEST_BODY).collect().await {
            Ok(body) => Ok(Reply { code: head.status, body: body.to_bytes() }),
            Err(error) => match error.downcast::<hyper::Error>() {
                Ok(error) => Err(lost(*error)),
                Err(_too_long) => Err(Lost::TooLong),
            },
        }
    }

    /// Waits until the connection has ended: by the other end, or by the network.
    pub async fn ended(&mut self) {
        // That the driver panicked is as good an end as any.
        drop((&mut self.driver).await);
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.driver.is_finished() || self.sender.is_closed()
    }
}

/// Waits until the open connection has ended; for ever, where none is open.
pub async fn ended(open: &mut Option<(ConnectionId, Connection)>) {
    match open {
        Some((_, connection)) => connection.ended().await,
        None => std::future::pending().await,
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn lost(error: hyper::Error) -> Lost {
    if error.is_parse() || error.is_parse_too_large() {
        Lost::NotHttp
    } else if std::error::Error::source(&error).is_some_and(|source| source.to_string() == TOO_MUCH) {
        Lost::TooLong
    } else {
        Lost::Broken(error)
    }
}

const TOO_MUCH: &str = "more than one answer may have";

/// Reads at most a head and a body for each request. A limit on the body alone would not do: an endless row of `100
/// Continue`, or of trailers, is no body.
struct Bounded {
    stream: TcpStream,
    read: Arc<AtomicUsize>,
}

impl AsyncRead for Bounded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.load(Ordering::Relaxed) > LONGEST_BODY + 2 * LONGEST_HEAD {
            return Poll::Ready(Err(io::Error::other(TOO_MUCH)));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.read.fetch_add(buf.filled().len().saturating_sub(before), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
