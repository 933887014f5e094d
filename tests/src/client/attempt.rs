//! One connection: tried, asked, read to its end.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::{Host, clock::monotonic_now};

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\nHost: lab\r\n\r\n";

/// What came of a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// An answer, whole.
    Served {
        /// Whose: the server's name.
        by: String,
    },
    /// A reset in answer to the SYN: nobody listens.
    Refused,
    /// A reset later than that.
    Reset,
    /// Nothing within the time.
    TimedOut,
    /// The server's end of the connection without a whole answer.
    Closed,
    /// Something else, in the system's words.
    Other(String),
}

/// One connection of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it was tried, since its client started.
    pub offset: Duration,
    /// When it was tried, on the clock of [`monotonic_now`]. The SYN leaves some microseconds later.
    pub tried_at: u64,
    /// Where to; tells the family.
    pub target: SocketAddr,
    /// From which port, if the connection was established or the port was chosen.
    pub source_port: Option<u16>,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took from the try to the outcome.
    pub took: Duration,
}

/// Tries one connection from a host and waits for what comes of it, at most `within`. SYNs that are not answered go out
/// again after 1, 3 and 7 seconds.
pub fn connect_once(host: &Host, target: SocketAddr, within: Duration) -> Attempt {
    host.block_on(|| attempt(target, None, within, monotonic_now()))
}

/// The same from a chosen port.
pub fn connect_from(host: &Host, source_port: u16, target: SocketAddr, within: Duration) -> Attempt {
    host.block_on(|| attempt(target, Some(source_port), within, monotonic_now()))
}

/// Tries one connection in the namespace of the calling thread.
pub(super) async fn attempt(target: SocketAddr, from: Option<u16>, within: Duration, start: u64) -> Attempt {
    let tried_at = monotonic_now();
    let mut source_port = from;
    let outcome = timeout(within, exchange(target, &mut source_port)).await.unwrap_or(Outcome::TimedOut);
    Attempt {
        offset: Duration::from_nanos(tried_at.saturating_sub(start)),
        tried_at,
        target,
        source_port,
        outcome,
        took: Duration::from_nanos(monotonic_now().saturating_sub(tried_at)),
    }
}

async fn exchange(target: SocketAddr, source_port: &mut Option<u16>) -> Outcome {
    let mut connection = match connect(target, *source_port).await {
        Ok(connection) => connection,
        Err(error) => return failure(&error),
    };
    *source_port = connection.local_addr().ok().map(|address| address.port());
    if let Err(error) = connection.write_all(REQUEST).await {
        return failure(&error);
    }
    let mut answer = Vec::new();
    let ended = connection.read_to_end(&mut answer).await;
    match (served_by(&answer), ended) {
        (Some(by), _) => Outcome::Served { by },
        (None, Ok(_)) => Outcome::Closed,
        (None, Err(error)) => failure(&error),
    }
}

async fn connect(target: SocketAddr, source_port: Option<u16>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if let Some(port) = source_port {
        socket.set_reuse_address(true)?;
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, port).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, port).into(),
        };
        socket.bind(&any.into())?;
    }
    TcpSocket::from_std_stream(socket.into()).connect(target).await
}

/// The body of a whole HTTP answer with its length given, which is the server's name.
pub(super) fn served_by(answer: &[u8]) -> Option<String> {
    let text = str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?
        .1;
    let whole = head.split_ascii_whitespace().nth(1) == Some("200") && length.trim().parse() == Ok(body.len());
    whole.then(|| body.to_owned())
}

fn failure(error: &io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => Outcome::Reset,
        ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::served_by;

    #[test]
    fn only_a_whole_answer_counts() {
        let answer = |length, body| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes();
        assert_eq!(served_by(&answer(1, "a")), Some("a".to_owned()));
        assert_eq!(served_by(&answer(5, "a")), None);
        assert_eq!(served_by(b"HTTP/1.1 503 Unavailable\r\ncontent-length: 1\r\n\r\na"), None);
        assert_eq!(served_by(b"HTTP/1.1 200 OK\r\ncontent-le"), None);
        assert_eq!(served_by(b""), None);
    }
}
