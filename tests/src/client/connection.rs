//! A connection that stays open: a tracked flow.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use super::attempt::served_by;
use crate::Host;

/// An established connection of a host, over which requests can be sent one after the other.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    target: SocketAddr,
}

// === impl Connection ===

impl Connection {
    /// Connects. Connecting, and each answer, may take `within`.
    ///
    /// # Errors
    ///
    /// When the connection is not established in time.
    pub fn open(host: &Host, target: SocketAddr, within: Duration) -> Result<Self> {
        let stream = host
            .run(|| TcpStream::connect_timeout(&target, within))
            .with_context(|| format!("no connection from {} to {target}", host.role()))?;
        stream.set_read_timeout(Some(within))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, target })
    }

    /// Asks, and returns the name of the server that answered.
    ///
    /// # Errors
    ///
    /// When the answer does not come, or is not a whole one.
    pub fn request(&mut self) -> Result<String> {
        let target = self.target;
        self.stream
            .write_all(b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n")
            .with_context(|| format!("a request to {target} was not sent"))?;
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(name) = served_by(&answer) {
                return Ok(name);
            }
            let length = self.stream.read(&mut buffer).with_context(|| format!("no answer from {target}"))?;
            ensure!(length > 0, "{target} closed the connection without an answer");
            answer.extend(buffer.iter().take(length));
        }
    }

    /// Sends bytes that nobody has asked for, as a segment of their own.
    ///
    /// # Errors
    ///
    /// When the connection is broken.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).with_context(|| format!("{} bytes to {} were not sent", bytes.len(), self.target))
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }
}
