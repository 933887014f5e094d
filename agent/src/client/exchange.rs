//! One request over a connection of its own, and the whole answer. Nothing the other side sends is trusted to be short
//! or to end.

use std::{
    borrow::Cow,
    error::Error,
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, StatusCode, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use super::Candidate;

/// How long a connection may take to come about. On loopback it is there at once, or the agent is not.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest answer that is read, head included: 1 MiB. A verdict has a few hundred bytes, a status some kilobytes.
pub const LONGEST_ANSWER: usize = 1 << 20;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path, with its query.
    pub path: Cow<'static, str>,
    /// What the `Host` header says.
    pub host: Cow<'static, str>,
    /// The body; may be empty.
    pub body: Bytes,
    /// For how long the caller will wait, in the header `lastsyn-max-wait-ms`; the agent may ignore it.
    pub max_wait: Option<Duration>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, complete.
    pub body: Bytes,
}

/// Why there was no complete answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// Nobody takes the connection.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// Neither taken nor refused within [`CONNECT_TIMEOUT`].
    #[error("cannot connect: no answer within {} s", CONNECT_TIMEOUT.as_secs())]
    ConnectTimeout,
    /// The request could not be written down.
    #[error("cannot form the request: {0}")]
    Request(#[source] hyper::http::Error),
    /// The connection ended early, held something that is not HTTP, or more than [`LONGEST_ANSWER`].
    #[error("connected, but no whole HTTP answer came: {0}{cause}", cause = Cause(.0))]
    Http(#[source] hyper::Error),
}

/// A connection to an agent, for one request.
pub struct Connection(Box<dyn Stream>);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Reads at most [`LONGEST_ANSWER`] bytes, then fails. A limit on the body alone would not do: an endless row of `100
/// Continue` is no body, and reading it keeps the timers of the hook waiting.
struct Bounded {
    stream: Box<dyn Stream>,
    read: usize,
}

// === impl Connection ===

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// [`ExchangeError::Connect`] and [`ExchangeError::ConnectTimeout`].
    pub async fn open(candidate: &Candidate) -> Result<Self, ExchangeError> {
        let connect = async {
            Ok(Self(match candidate {
                Candidate::Tcp(address) => Box::new(TcpStream::connect(address).await?),
                Candidate::Unix(path) => Box::new(UnixStream::connect(path).await?),
            }))
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
            Ok(connection) => connection.map_err(ExchangeError::Connect),
            Err(_elapsed) => Err(ExchangeError::ConnectTimeout),
        }
    }

    /// Asks once, for the whole answer. There is no time-out: the caller knows for how long it can wait, and drops the
    /// future then.
    ///
    /// # Errors
    /// See [`ExchangeError`].
    pub async fn ask(self, request: &Request) -> Result<Answer, ExchangeError> {
        let message = request.message().map_err(ExchangeError::Request)?;
        let stream = TokioIo::new(Bounded { stream: self.0, read: 0 });
        let (mut sender, connection) = http1::handshake(stream).await.map_err(ExchangeError::Http)?;
        let ask = async {
            let (head, body) = sender.send_request(message).await?.into_parts();
            Ok(Answer { status: head.status, headers: head.headers, body: body.collect().await?.to_bytes() })
        };
        let drive = async {
            // What went wrong with the connection, the request is told as well.
            drop(connection.await);
            std::future::pending().await
        };
        tokio::select! {
            biased;
            answer = ask => answer.map_err(ExchangeError::Http),
            never = drive => never,
        }
    }
}

// === impl Request ===

impl Request {
    /// A request without a body.
    pub fn new(method: Method, path: impl Into<Cow<'static, str>>) -> Self {
        Self { method, path: path.into(), host: Cow::Borrowed("localhost"), body: Bytes::new(), max_wait: None }
    }

    fn message(&self) -> Result<hyper::Request<Full<Bytes>>, hyper::http::Error> {
        let mut head = hyper::Request::builder()
            .method(self.method.clone())
            .uri(self.path.as_ref())
            .header(header::HOST, self.host.as_ref())
            .header(header::CONNECTION, "close");
        if let Some(max_wait) = self.max_wait {
            head = head.header("lastsyn-max-wait-ms", max_wait.as_millis().to_string());
        }
        head.body(Full::new(self.body.clone()))
    }
}

// === impl Bounded ===

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.read += buffer.filled().len() - before;
        Poll::Ready(if self.read > LONGEST_ANSWER {
            Err(io::Error::other(format!("the answer is longer than {LONGEST_ANSWER} bytes")))
        } else {
            Ok(())
        })
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The error below, which hyper's own message leaves out.
struct Cause<'a>(&'a hyper::Error);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}
