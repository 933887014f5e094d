//! One HTTP request from a host, one answer.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
pub use hyper::Method;
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use crate::{Host, clock::monotonic_now};

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body; bytes that are no UTF-8 are replaced.
    pub body: String,
    /// When the status line and headers had arrived, on the clock of [`monotonic_now`].
    pub answered_at: u64,
}

// === impl Answer ===

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// When it is none; the message has it.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.body).with_context(|| format!("status {}, body `{}`", self.status, self.body))
    }
}

/// Sends a request from a host, each over a connection of its own, and waits for the answer.
///
/// # Errors
///
/// When there is no whole answer within the time. A status code is no error.
pub fn request(
    host: &Host,
    method: &Method,
    target: SocketAddr,
    path: &str,
    body: &str,
    within: Duration,
) -> Result<Answer> {
    host.block_on(|| timeout(within, exchange(method, target, path, body)))
        .with_context(|| format!("not within {within:?}"))
        .and_then(|answer| answer)
        .with_context(|| format!("{method} http://{target}{path} from {} was not answered", host.role()))
}

/// Gets a resource; see [`request`].
///
/// # Errors
///
/// When there is no whole answer within the time. A status code is no error.
pub fn get(host: &Host, target: SocketAddr, path: &str, within: Duration) -> Result<Answer> {
    request(host, &Method::GET, target, path, "", within)
}

/// Sends a request from the namespace of the calling thread.
pub(crate) async fn exchange(method: &Method, target: SocketAddr, path: &str, body: &str) -> Result<Answer> {
    let stream = TcpStream::connect(target).await.context("no connection")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, target.to_string())
        .header(header::CONNECTION, "close")
        // Nobody takes an empty body for JSON, and who takes text does not look.
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let answered_at = monotonic_now();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        anyhow::Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned(), answered_at })
    };
    // The connection is driven beside the request, and ends with it.
    tokio::pin!(answer, connection);
    tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => {
            ended?;
            answer.await
        }
    }
}
