//! A client that keeps its connection for as long as the server lets it, over HTTP/1.1 or HTTP/2, and opens another one when
//! it is asked to leave.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

use anyhow::Result;

use super::attempt::served_by;
use crate::Host;

/// Between two requests.
const PAUSE: Duration = Duration::from_millis(20);
/// For connecting, and for each answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1: asked to leave by `Connection: close`.
    Http1,
    /// HTTP/2 without TLS, known beforehand: asked to leave by GOAWAY.
    Http2,
}

/// What a client has met with so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// How many requests were answered.
    pub answered: u64,
    /// How many connections it has opened.
    pub connections: u64,
    /// How often it was asked to leave.
    pub asked_to_leave: u64,
    /// What went wrong: a connection refused, or broken under a request.
    pub lost: Vec<String>,
}

/// A client on a thread of its own in a host. It stops when dropped.
#[derive(Debug)]
pub struct KeepAlive {
    kept: Arc<Mutex<Kept>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KeepAlive {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(host: &Host, target: SocketAddr, version: Version) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let kept = Arc::<Mutex<Kept>>::default();
        let shared = Arc::clone(&kept);
        let thread = host.spawn("keep-alive client", move || {
            let note = |change: &dyn Fn(&mut Kept)| change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
            let mut connection = None;
            while matches!(stopped.recv_timeout(PAUSE), Err(RecvTimeoutError::Timeout)) {
                match ask(&mut connection, target, version, &|| note(&|kept| kept.connections += 1)) {
                    Ok(stays) => {
                        note(&|kept| {
                            kept.answered += 1;
                            kept.asked_to_leave += u64::from(!stays);
                        });
                        connection = connection.filter(|_| stays);
                    }
                    Err(error) => {
                        note(&|kept| kept.lost.push(error.to_string()));
                        connection = None;
                    }
                }
            }
        })?;
        Ok(Self { kept, stop: Some(stop), thread: Some(thread) })
    }

    /// What it has met with so far.
    pub fn so_far(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the thread of a keep-alive client panicked");
        }
    }
}

struct Open {
    stream: TcpStream,
    /// HTTP/2: the next request's stream.
    next: u32,
}

/// Asks once, over the connection that there is or a new one; whether it may stay.
fn ask(connection: &mut Option<Open>, target: SocketAddr, version: Version, opened: &dyn Fn()) -> io::Result<bool> {
    if connection.is_none() {
        let mut stream = TcpStream::connect_timeout(&target, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        if version == Version::Http2 {
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")?;
            frame(&mut stream, SETTINGS, 0, 0, &[])?;
        }
        opened();
        *connection = Some(Open { stream, next: 1 });
    }
    let open = connection.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    match version {
        Version::Http1 => http1(&mut open.stream),
        Version::Http2 => http2(open),
    }
}

fn http1(stream: &mut TcpStream) -> io::Result<bool> {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut buffer = [0; 2048];
    while served_by(&answer).is_none() {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed without a whole answer"));
        }
        answer.extend(buffer.iter().take(length));
    }
    let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    Ok(!text.contains("\r\nconnection: close\r\n"))
}

/// Frame types and flags of RFC 9113.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// `GET http://lab/` in the static table of RFC 7541, with the authority spelled out.
const REQUEST: &[u8] = b"\x82\x86\x84\x41\x03lab";

fn http2(open: &mut Open) -> io::Result<bool> {
    let stream = open.next;
    open.next += 2;
    frame(&mut open.stream, HEADERS, END_STREAM | END_HEADERS, stream, REQUEST)?;
    let mut stays = true;
    loop {
        let mut head = [0; 9];
        open.stream.read_exact(&mut head)?;
        let [a, b, c, kind, flags, id @ ..] = head;
        let mut payload = vec![0; usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)];
        open.stream.read_exact(&mut payload)?;
        match kind {
            SETTINGS if flags & ACK == 0 => frame(&mut open.stream, SETTINGS, ACK, 0, &[])?,
            GOAWAY => stays = false,
            RST_STREAM => return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the stream was reset")),
            DATA | HEADERS if flags & END_STREAM != 0 && u32::from_be_bytes(id) == stream => break,
            _ => {}
        }
    }
    // A GOAWAY follows the answer that it comes with, if it does.
    Ok(stays && !goaway_follows(open)?)
}

/// Whether the next frame, if one comes before the next request is due, is a GOAWAY.
fn goaway_follows(open: &mut Open) -> io::Result<bool> {
    open.stream.set_read_timeout(Some(PAUSE))?;
    let mut head = [0; 9];
    let peeked = open.stream.peek(&mut head);
    open.stream.set_read_timeout(Some(PATIENCE))?;
    match peeked {
        Ok(0) => Ok(true),
        Ok(length) => Ok(length > 3 && head.get(3) == Some(&GOAWAY)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
        Err(error) => Err(error),
    }
}

fn frame(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_be_bytes();
    let mut bytes = length.get(1..).unwrap_or_default().to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(id.to_be_bytes());
    bytes.extend(payload);
    stream.write_all(&bytes)
}
