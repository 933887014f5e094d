//! The poller against real sockets on loopback.

mod captures;
mod conduct;
mod mutations;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::*;
use crate::core::{
    clock::Monotonic,
    cluster::{HealthOutcome, HealthReport, NodeName, Wanted},
};

/// How long any of this may take before it has failed.
const DEADLINE: Duration = Duration::from_secs(30);

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// Answers so, byte for byte, and keeps the connection.
    Answers(Vec<u8>),
    /// Answers so, and closes the connection.
    AnswersAndCloses(Vec<u8>),
    /// Says nothing, and keeps it.
    Hangs,
    /// Waits until it is told, and answers then.
    AnswersWhenTold(Arc<tokio::sync::Notify>, Vec<u8>),
}

/// A server on loopback that does the same with every request whose path it has an answer for; 404 for others.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) requests: mpsc::UnboundedReceiver<(usize, String)>,
    tasks: JoinSet<()>,
}

impl Server {
    pub(super) async fn start(does: impl Fn(usize, &str) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (told, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let does = Arc::new(does);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (does, told) = (Arc::clone(&does), told.clone());
                connections.spawn(async move { serve(stream, number, &*does, told).await });
            }
        });
        Self { address, requests, tasks }
    }

    /// Ends it with all its connections.
    pub(super) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    does: &(dyn Fn(usize, &str) -> Does + Send + Sync),
    told: mpsc::UnboundedSender<(usize, String)>,
) {
    let mut read = Vec::new();
    loop {
        let mut buffer = [0; 1024];
        let head_end = read.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = head_end else {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(length) => read.extend_from_slice(&buffer[..length]),
            }
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end + 4);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        // Nobody counts any more if this fails.
        drop(told.send((number, path.clone())));
        let (answer, closes) = match does(number, &path) {
            Does::Answers(answer) => (answer, false),
            Does::AnswersAndCloses(answer) => (answer, true),
            Does::Hangs => std::future::pending().await,
            Does::AnswersWhenTold(notify, answer) => {
                notify.notified().await;
                (answer, false)
            }
        };
        if stream.write_all(&answer).await.is_err() || closes {
            return;
        }
    }
}

/// A poller, and what it reports.
pub(super) struct Polled {
    pub(super) reports: mpsc::Receiver<HealthReport>,
    pub(super) wanted: watch::Sender<Wanted>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) const WANTED: Wanted = Wanted::Yes { since: Monotonic::from_nanos(0), due: None };

pub(super) fn start(addresses: Vec<IpAddr>, port: u16, timeout: Duration) -> Polled {
    let target = Target {
        node: NodeName("a".to_owned()),
        addresses,
        port,
        manner: Manner { interval: Duration::from_millis(5), timeout },
        connections: Arc::default(),
        rate: Arc::new(Rate::new(10_000)),
    };
    let (sender, reports) = mpsc::channel(1024);
    let (wanted, receiver) = watch::channel(Wanted::Yes { since: crate::drive::clock::now(), due: None });
    Polled { reports, wanted, task: tokio::spawn(poll(target, receiver, sender)) }
}

pub(super) fn poll_server(server: &Server, timeout: Duration) -> Polled {
    start(vec![server.address.ip()], server.address.port(), timeout)
}

impl Polled {
    pub(super) async fn next(&mut self) -> HealthReport {
        tokio::time::timeout(DEADLINE, self.reports.recv()).await.expect("in time").expect("it goes on")
    }
}

pub(super) const LONG: Duration = Duration::from_secs(20);
pub(super) const SHORT: Duration = Duration::from_millis(50);

/// An answer with a body and its length.
pub(super) fn http(code: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {code} Whatever\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A status with this stamp for both families.
pub(super) fn status(second: u8) -> String {
    let of = format!(r#"{{"lastUpdated":"2026-11-29T21:46:{second:02}.5Z","healthy":true}}"#);
    format!(
        r#"{{"lastUpdated":"2026-11-29T21:46:32Z","currentTime":"2026-11-29T21:46:32Z","healthy":true,"status":{{"IPv4":{of},"IPv6":{of}}}}}"#
    )
}

pub(super) fn is_status(outcome: &HealthOutcome) -> bool {
    matches!(outcome, HealthOutcome::Status(status) if status.v4.is_some() && status.v6.is_some())
}
