//! The agent's side: asks the fence, for as long as it takes, and tells what it says.
//!
//! A fence that cannot be reached, refuses, or says nothing is tried again, and the drain goes on by what the agent itself can
//! ask. Nothing here ends a drain.

use std::{net::SocketAddr, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode, body::Incoming, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, lookup_host},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::protocol::{ALIVE_EVERY_MS, Line, PATH, Question, RefusalBody, Stands, os_of};
use crate::{
    config::FencePlace,
    core::{
        clock::Monotonic,
        cluster::{ClusterEvent, FenceRequest, Node, NodeName},
        confirm::{FenceProgress, FenceReach},
        listener::Family,
    },
    drive::clock,
};

/// The first and the longest wait after a question that was not answered.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// A fence that says nothing for so long is gone.
const SILENT: Duration = Duration::from_millis(3 * ALIVE_EVERY_MS);

/// The longest line: a list of some thousand nodes.
const LONGEST_LINE: usize = 1 << 20;

/// The longest refusal.
const LONGEST_REFUSAL: usize = 16 << 10;

/// By how much less than the fence's clock a time is taken to be, in parts of a thousand: clocks that are held to a common
/// time run apart by half of that at the most (`adjtimex`, 500 ppm).
const CLOCKS_APART: u32 = 1000;

/// What is asked, and where.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Where the fence is.
    pub place: FencePlace,
    /// `routing.watchLag`, and how long a connection may take.
    pub bounds: (Duration, Duration),
    /// Who asks, for people.
    pub pod: String,
}

/// Why there was no answer, or it broke off.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{place} cannot be looked up: {why}")]
    Name { place: String, why: String },
    #[error("no connection to {address}: {why}")]
    Connect { address: String, why: String },
    #[error("{address} broke the connection: {why}")]
    Broken { address: String, why: String },
    #[error("{address} said nothing for {} s", SILENT.as_secs())]
    Silent { address: String },
    #[error("{address} refuses ({status}): {why}")]
    Refused { address: String, status: u16, why: String, leader: Option<SocketAddr>, retry_after: Option<Duration> },
    #[error("{address} cannot write markers: {why}")]
    Unable { address: String, why: String },
    #[error("{address} serves no more; another replica does, or will")]
    Moved { address: String },
    #[error("what {address} says is no answer of a fence: {why}")]
    Stranger { address: String, why: String },
}

/// How asking ended otherwise.
enum Ended {
    /// Every node is confirmed.
    Done,
    /// Nobody listens any more.
    Gone,
}

/// Asks the newest question until nobody listens any more.
pub async fn ask(
    asking: Asking,
    mut questions: watch::Receiver<Option<FenceRequest>>,
    says: mpsc::Sender<ClusterEvent>,
) {
    let mut backoff = BACKOFF.0;
    let mut leader = None;
    loop {
        let Some(request) = *questions.borrow_and_update() else {
            if questions.changed().await.is_err() {
                return;
            }
            continue;
        };
        let mut answered = false;
        let ended = tokio::select! {
            ended = once(&asking, leader.take(), request, &says, &mut answered) => Some(ended),
            changed = questions.changed() => {
                if changed.is_err() {
                    return;
                }
                None
            }
        };
        if answered {
            backoff = BACKOFF.0;
        }
        let failed = match ended {
            None => continue,
            Some(Ok(Ended::Gone)) => return,
            Some(Ok(Ended::Done)) => {
                if questions.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Some(Err(failed)) => failed,
        };
        tracing::debug!(why = %failed, "asking the fence again");
        let mut wait = backoff.mul_f64(fastrand::f64().mul_add(0.5, 0.75));
        match &failed {
            // Where the other one is, is known: he is asked at once.
            Failed::Refused { address, leader: Some(there), .. } if *address != there.to_string() => {
                leader = Some(*there);
                wait = Duration::from_millis(5);
            }
            Failed::Refused { retry_after: Some(after), .. } => wait = wait.max(*after),
            _ => {}
        }
        if leader.is_none() && says.send(ClusterEvent::FenceFails(failed.to_string())).await.is_err() {
            return;
        }
        backoff = (backoff * 2).min(BACKOFF.1);
        tokio::select! {
            () = sleep(wait) => {}
            // A new question is no reason to ask sooner: it is taken when the time has come.
            closed = closed(&says) => return closed,
        }
    }
}

async fn closed(says: &mpsc::Sender<ClusterEvent>) {
    says.closed().await;
}

async fn once(
    asking: &Asking,
    leader: Option<SocketAddr>,
    request: FenceRequest,
    says: &mpsc::Sender<ClusterEvent>,
    answered: &mut bool,
) -> Result<Ended, Failed> {
    let (watch_lag, limit) = asking.bounds;
    let (address, stream) = match leader {
        Some(leader) => (leader.to_string(), connect(leader, limit).await?),
        None => find(&asking.place, limit).await?,
    };
    let broken = |why: hyper::Error| Failed::Broken { address: address.clone(), why: why.to_string() };
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(LONGEST_REFUSAL)
        .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let question = Question {
        families: Family::ALL.to_vec(),
        // A little more, as times of the fence are taken to be a little less.
        stand_ms: u64::try_from((watch_lag + watch_lag / 500).as_millis()).unwrap_or(u64::MAX).saturating_add(3),
        first_list_ms: u64::try_from(watch_lag.as_millis()).unwrap_or(u64::MAX),
        pod: asking.pod.clone(),
    };
    let body = serde_json::to_vec(&question)
        .map_err(|error| Failed::Stranger { address: address.clone(), why: error.to_string() })?;
    let message = Request::post(PATH)
        .header(header::HOST, asking.place.authority())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "lastsyn")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Failed::Stranger { address: address.clone(), why: error.to_string() })?;
    // Whatever the fence says is of a time after this.
    let sent_at = clock::now();
    let talk = async {
        let response = match timeout(SILENT, sender.send_request(message)).await {
            Ok(response) => response.map_err(broken)?,
            Err(_elapsed) => return Err(Failed::Silent { address: address.clone() }),
        };
        if response.status() != StatusCode::OK {
            return Err(refused(&address, response).await);
        }
        *answered = true;
        let reading = Reading { address: &address, request, sent_at, says };
        reading.lines(response.into_body()).await
    };
    let drive = async {
        // What went wrong with the connection, the answer is told as well.
        drop(connection.await);
        std::future::pending().await
    };
    tokio::select! {
        biased;
        ended = talk => ended,
        ended = drive => ended,
    }
}

async fn connect(address: SocketAddr, limit: Duration) -> Result<TcpStream, Failed> {
    let failed = |why: String| Failed::Connect { address: address.to_string(), why };
    let stream = match timeout(limit, TcpStream::connect(address)).await {
        Ok(stream) => stream.map_err(|error| failed(error.to_string()))?,
        Err(_elapsed) => return Err(failed("no answer in time".to_owned())),
    };
    stream.set_nodelay(true).map_err(|error| failed(error.to_string()))?;
    Ok(stream)
}

/// The first of the place's addresses that takes a connection, each of them first at times.
async fn find(place: &FencePlace, limit: Duration) -> Result<(String, TcpStream), Failed> {
    let name = |why: String| Failed::Name { place: place.to_string(), why };
    let found = match timeout(limit, lookup_host((place.host(), place.port()))).await {
        Ok(found) => found.map_err(|error| name(error.to_string()))?,
        Err(_elapsed) => return Err(name("no answer in time".to_owned())),
    };
    let mut addresses: Vec<SocketAddr> = found.collect();
    if addresses.len() > 1 {
        let first = fastrand::usize(..addresses.len());
        addresses.rotate_left(first);
    }
    let mut last = name("it has no address".to_owned());
    for address in addresses {
        match connect(address, limit).await {
            Ok(stream) => return Ok((address.to_string(), stream)),
            Err(failed) => last = failed,
        }
    }
    Err(last)
}

async fn refused(address: &str, response: hyper::Response<Incoming>) -> Failed {
    let (head, body) = response.into_parts();
    let after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = timeout(SILENT, http_body_util::Limited::new(body, LONGEST_REFUSAL).collect()).await;
    let body = body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let said = serde_json::from_slice::<RefusalBody>(&body).ok();
    let why = said.as_ref().map_or_else(|| "it does not say why".to_owned(), |said| said.error.clone());
    Failed::Refused {
        address: address.to_owned(),
        status: head.status.as_u16(),
        why,
        leader: said.and_then(|said| said.leader?.parse().ok()),
        retry_after: after.map(|seconds| Duration::from_secs(seconds).min(Duration::from_secs(30))),
    }
}

struct Reading<'a> {
    address: &'a str,
    request: FenceRequest,
    sent_at: Monotonic,
    says: &'a mpsc::Sender<ClusterEvent>,
}

impl Reading<'_> {
    async fn lines(&self, mut body: Incoming) -> Result<Ended, Failed> {
        let address = || self.address.to_owned();
        let stranger = |why: &str| Failed::Stranger { address: address(), why: why.to_owned() };
        let mut read = BytesMut::new();
        let mut known: Vec<Node> = Vec::new();
        loop {
            let frame = match timeout(SILENT, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(Failed::Broken { address: address(), why: error.to_string() }),
                Ok(None) => return Err(Failed::Broken { address: address(), why: "the answer ended".to_owned() }),
                Err(_elapsed) => return Err(Failed::Silent { address: address() }),
            };
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > LONGEST_LINE {
                return Err(stranger("a line is too long"));
            }
            read.extend_from_slice(&data);
            while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                let line = read.split_to(end);
                read.advance(1);
                let line: Line = serde_json::from_slice(&line).map_err(|error| stranger(&error.to_string()))?;
                match line {
                    Line::Done => return Ok(Ended::Done),
                    Line::Failed { why } => return Err(Failed::Unable { address: address(), why }),
                    Line::Moved => return Err(Failed::Moved { address: address() }),
                    line => {
                        if let Some(event) = self.event(line, &mut known)
                            && self.says.send(event).await.is_err()
                        {
                            return Ok(Ended::Gone);
                        }
                    }
                }
            }
        }
    }

    /// What a line tells the core.
    fn event(&self, line: Line, known: &mut Vec<Node>) -> Option<ClusterEvent> {
        match line {
            Line::Taken { .. } => Some(ClusterEvent::FenceAnswers),
            Line::Nodes { as_of_ms, nodes } => {
                if let Some(nodes) = nodes {
                    let node = |node: super::protocol::NodeLine| Node {
                        system: os_of(node.os.as_deref()),
                        name: NodeName(node.name),
                    };
                    *known = nodes.into_iter().map(node).collect();
                }
                Some(ClusterEvent::FenceNodes { nodes: known.clone(), as_of: self.at(as_of_ms) })
            }
            Line::Node(state) => {
                let node = NodeName(state.node);
                let reach = |reach| Some(ClusterEvent::FenceReach { node: node.clone(), family: state.family, reach });
                match state.state {
                    Stands::Confirmed => Some(ClusterEvent::Fence(FenceProgress {
                        request: self.request,
                        node,
                        family: state.family,
                        stood_at: self.at(state.stood_ms.unwrap_or(0)),
                        received_at: clock::now(),
                    })),
                    Stands::Pending => reach(FenceReach::Awaited),
                    Stands::Unobservable => reach(FenceReach::Unobservable(state.why.unwrap_or_default())),
                    Stands::Unknown => None,
                }
            }
            Line::Alive | Line::Done | Line::Moved | Line::Failed { .. } | Line::Unknown => None,
        }
    }

    /// A time of the fence's, by our clock: not later than it was. The question arrived after it was sent.
    fn at(&self, after_ms: u64) -> Monotonic {
        let after = Duration::from_millis(after_ms);
        self.sent_at + after.saturating_sub(after / CLOCKS_APART)
    }
}

/// One look at the fence, as it answers.
///
/// # Errors
/// If it does not; in words.
pub async fn status(place: &FencePlace) -> Result<String, String> {
    let look = async {
        let (address, stream) = find(place, SILENT).await.map_err(|failed| failed.to_string())?;
        let broken = |error: hyper::Error| format!("{address}: {error}");
        let (mut sender, connection) =
            http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(broken)?;
        let message = Request::get("/v1/status").header(header::HOST, place.authority()).body(Full::default());
        let message = message.map_err(|error| error.to_string())?;
        let talk = async {
            let response = sender.send_request(message).await.map_err(broken)?;
            let status = response.status();
            let body = http_body_util::Limited::new(response.into_body(), LONGEST_LINE).collect().await;
            let body = body.map_err(|error| format!("{address}: {error}"))?.to_bytes();
            let text = String::from_utf8_lossy(&body).into_owned();
            if status == StatusCode::OK { Ok(text) } else { Err(format!("{address} answers {status}: {text}")) }
        };
        let drive = async {
            // What went wrong with the connection, the answer is told as well.
            drop(connection.await);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            said = talk => said,
            () = drive => Err(format!("{address}: the connection ended")),
        }
    };
    timeout(2 * SILENT, look).await.map_err(|_elapsed| "no answer in time".to_owned())?
}
