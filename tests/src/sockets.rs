//! The TCP sockets of a host, as its kernel lists them.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{Host, Process, wait::await_condition};

/// How long a server may take to listen. The largest loads for a second where the machine is idle.
const START: Duration = Duration::from_secs(20);

/// A TCP socket's state, as far as the lab tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// Connected, both ways open.
    Established,
    /// The peer's SYN was answered, its ACK is awaited.
    SynReceived,
    /// Connections are accepted.
    Listen,
    /// The connection has ended, and its last segments are waited for.
    TimeWait,
    /// Any other.
    Other,
}

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its own address; `[::]` is a listener for IPv6 and maybe IPv4.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// Its state.
    pub state: SocketState,
    /// For a listener: connections that wait to be accepted. Otherwise bytes that wait to be read.
    pub waiting: u32,
}

/// Every TCP socket of a host.
///
/// # Errors
///
/// When the kernel's list cannot be read.
pub fn tcp_sockets(host: &Host) -> Result<Vec<Socket>> {
    // `/proc/net` is the process's main thread's; this thread is the one in the host.
    let (v4, v6) = host
        .run(|| (fs::read_to_string("/proc/thread-self/net/tcp"), fs::read_to_string("/proc/thread-self/net/tcp6")));
    let text = v4.and_then(|v4| Ok(v4 + &v6?)).with_context(|| format!("the sockets of {}", host.role()))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Whether a host listens on a port, on any address of any family.
///
/// # Errors
///
/// When the kernel's list cannot be read.
pub fn listens(host: &Host, port: u16) -> Result<bool> {
    Ok(listeners(host, port)?.next().is_some())
}

/// The sockets of a host that listen on a port.
///
/// # Errors
///
/// When the kernel's list cannot be read.
pub fn listeners(host: &Host, port: u16) -> Result<impl Iterator<Item = Socket>> {
    let sockets = tcp_sockets(host)?;
    Ok(sockets.into_iter().filter(move |socket| socket.state == SocketState::Listen && socket.local.port() == port))
}

/// Waits until a server listens on each port with so many sockets at least. That takes no connection.
///
/// # Errors
///
/// When it ends, or does not listen in time; the message has what it wrote.
pub(crate) fn await_listeners(host: &Host, server: &Process, ports: &[u16], sockets_per_port: usize) -> Result<()> {
    let listens_on_all = || -> Result<bool> {
        server.ensure_running()?;
        for &port in ports {
            if listeners(host, port)?.count() < sockets_per_port {
                return Ok(false);
            }
        }
        Ok(true)
    };
    await_condition(&format!("{} listening on {ports:?}", server.name()), START, || match listens_on_all() {
        Ok(ready) => ready.then_some(Ok(())),
        Err(error) => Some(Err(error)),
    })
    .and_then(|outcome| outcome)
    .with_context(|| format!("it wrote:\n{}", server.report()))
}

/// The fields are `sl local_address rem_address st tx_queue:rx_queue ...`, numbers in hexadecimal.
fn parse(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    let state = match fields.next()? {
        "01" => SocketState::Established,
        "03" => SocketState::SynReceived,
        "06" => SocketState::TimeWait,
        "0A" => SocketState::Listen,
        _ => SocketState::Other,
    };
    let waiting = u32::from_str_radix(fields.next()?.split_once(':')?.1, 16).ok()?;
    Some(Socket { local, remote, state, waiting })
}

/// An address is printed as 32-bit words of this machine's byte order.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for start in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernel_are_read() {
        let v4 = "   1: 0200F40A:0050 0200000A:8F1C 01 00000000:00000012 00:00000000 00000000     0        0 2 1";
        let socket = parse(v4).unwrap();
        assert_eq!(socket.local, "10.244.0.2:80".parse().unwrap());
        assert_eq!(socket.remote, "10.0.0.2:36636".parse().unwrap());
        assert_eq!((socket.state, socket.waiting), (SocketState::Established, 18));

        let v6 =
            "   0: 000000FD000000000000000002000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000003 00";
        let socket = parse(v6).unwrap();
        assert_eq!(socket.local, "[fd00::2]:80".parse().unwrap());
        assert_eq!((socket.state, socket.waiting), (SocketState::Listen, 3));

        assert_eq!(parse("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when"), None);
    }
}
