//! A server that does as it is told, for tests.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Answers so, byte for byte, and keeps the connection.
    Answers(Vec<u8>),
    /// Answers so, and closes the connection.
    AnswersAndCloses(Vec<u8>),
    /// Says nothing, and keeps it.
    Hangs,
    /// Waits until it is told, and answers then.
    AnswersWhenTold(Arc<tokio::sync::Notify>, Vec<u8>),
}

/// A server on loopback that does with every request what it is told by the number of the connection and the path.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) requests: mpsc::UnboundedReceiver<(usize, String)>,
    tasks: JoinSet<()>,
    open: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn start(does: impl Fn(usize, &str) -> Does + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (told, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let (does, open) = (Arc::new(does), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&open);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let (does, told) = (Arc::clone(&does), told.clone());
                let counted = Counted::new(&count);
                connections.spawn(async move {
                    serve(stream, number, &*does, told).await;
                    drop(counted);
                });
            }
        });
        Self { address, requests, tasks, open }
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Ends it with all its connections.
    pub(crate) async fn stop(&mut self) {
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

/// Counts a connection for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An answer with a body and its length.
pub(crate) fn http(code: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {code} Whatever\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
