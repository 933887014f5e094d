//! The socket table, over `sock_diag`: listeners, accept queues, handshakes under way, established connections. Needs no
//! capability.

mod diag;

use std::net::IpAddr;

use diag::{Dump, DumpError, States};

use crate::core::{
    event::{Connections, Depth, HandshakeId, Sockets},
    listener::Port,
};

/// Reads the table of the process's namespace.
///
/// # Errors
///
/// In words for the operator, if the kernel does not answer.
pub fn read(depth: Depth) -> Result<Sockets, String> {
    dump(depth).map_err(|error| error.to_string())
}

fn dump(depth: Depth) -> Result<Sockets, DumpError> {
    let mut sockets = Sockets::default();
    let mut dump = Dump::open()?;
    dump.each(States::Listening, |socket| {
        if let (true, Ok(port)) = (reachable(socket.local), Port::try_from(socket.local_port)) {
            // For a listening socket `idiag_rqueue` is the length of its accept queue (`tcp_diag_get_info`).
            *sockets.listeners.entry(port).or_default() += u64::from(socket.receive_queue);
        }
    })?;
    if depth == Depth::Connections {
        let mut connections = Connections::default();
        dump.each(States::Handshakes, |socket| {
            if let Ok(port) = Port::try_from(socket.local_port) {
                connections.handshakes.insert(HandshakeId(socket.cookie), port);
            }
        })?;
        dump.each(States::Established, |socket| {
            if let Ok(port) = Port::try_from(socket.local_port)
                && sockets.listeners.contains_key(&port)
            {
                *connections.established.entry(port).or_default() += 1;
            }
        })?;
        sockets.connections = Some(connections);
    }
    Ok(sockets)
}

/// Whether a listener on this address can be reached from outside the pod.
fn reachable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_loopback(),
        IpAddr::V6(address) => {
            !address.is_loopback() && !address.to_ipv4_mapped().is_some_and(|mapped| mapped.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_loopback_listener_cannot_be_reached_from_outside() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(!reachable(address.parse().unwrap()), "{address}");
        }
        for address in ["0.0.0.0", "::", "10.1.2.3", "fd00::1", "::ffff:10.1.2.3"] {
            assert!(reachable(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn shows_a_listener_its_accept_queue_and_its_connections() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = Port::try_from(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(read(Depth::Listeners).unwrap().listeners.get(&port), Some(&0));
        let client = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        let sockets = read(Depth::Connections).unwrap();
        assert_eq!(sockets.listeners.get(&port), Some(&1));
        assert_eq!(sockets.connections.unwrap().established.get(&port), Some(&1));
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(read(Depth::Listeners).unwrap().listeners.get(&port), Some(&0));
        drop((client, accepted, listener));
        assert!(!read(Depth::Listeners).unwrap().listeners.contains_key(&port));
    }
}
