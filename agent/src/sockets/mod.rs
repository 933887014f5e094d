//! The socket table, over `sock_diag`: listeners, accept queues, handshakes under way, established connections. Needs no
//! capability.

mod diag;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use diag::States;

use crate::{
    core::{
        event::{Connections, Depth, HandshakeId, Sockets},
        listener::{Family, Port, Protocol},
    },
    netlink::{Dump, DumpError},
};

/// Reads the table of the process's namespace. Established connections are told for the ports that are listened on, and
/// for those in `also`: a listener that has closed leaves its connections behind.
///
/// # Errors
///
/// In words for the operator, if the kernel does not answer.
pub fn read(depth: Depth, also: &BTreeSet<Port>) -> Result<Sockets, String> {
    dump(depth, also).map_err(|error| error.to_string())
}

fn dump(depth: Depth, also: &BTreeSet<Port>) -> Result<Sockets, DumpError> {
    let mut dump = diag::open()?;
    // The handshakes before the accept queues: one that is completed meanwhile is then in its queue, or was taken.
    let connections = match depth {
        Depth::Listeners => None,
        Depth::Handshakes => Some(connections(&mut dump, States::Handshakes)?),
        Depth::Connections => Some(connections(&mut dump, States::Connections)?),
    };
    let mut listeners = BTreeMap::new();
    diag::each(&mut dump, States::Listening, |socket| {
        if let (true, Ok(port)) = (reachable(socket.local), Port::try_from(socket.local_port)) {
            // For a listening socket `idiag_rqueue` is the length of its accept queue (`tcp_diag_get_info`).
            *listeners.entry(port).or_default() += u64::from(socket.receive_queue);
        }
    })?;
    listeners.extend(datagram_ports(&mut dump, also).into_iter().map(|port| (port, 0)));
    let connections = connections.map(|(handshakes, mut established)| {
        established.retain(|port, _| listeners.contains_key(port) || also.contains(port));
        Connections { handshakes, established: (depth == Depth::Connections).then_some(established) }
    });
    Ok(Sockets { listeners, connections })
}

/// Those of the UDP ports that a socket is bound to without a peer. Where the kernel does not tell (it lacks
/// `CONFIG_INET_UDP_DIAG`), all of them: an agent that is asked to stop then stays rather than not.
fn datagram_ports(dump: &mut Dump, also: &BTreeSet<Port>) -> BTreeSet<Port> {
    let wanted: BTreeSet<_> = also.iter().copied().filter(|port| port.protocol() == Protocol::Udp).collect();
    if wanted.is_empty() {
        return wanted;
    }
    let mut open = BTreeSet::new();
    let dumped = diag::each(dump, States::Unconnected, |socket| {
        if let (true, Ok(port)) = (reachable(socket.local), Port::try_from(socket.local_port)) {
            open.insert(port.of(Protocol::Udp));
        }
    });
    match dumped {
        Ok(()) => wanted.intersection(&open).copied().collect(),
        Err(error) => {
            tracing::debug!(%error, "whether the watched UDP ports are open is not known");
            wanted
        }
    }
}

type Handshakes = BTreeMap<HandshakeId, Port>;
type Established = BTreeMap<Port, u64>;

fn connections(dump: &mut Dump, states: States) -> Result<(Handshakes, Established), DumpError> {
    let (mut handshakes, mut established) = (Handshakes::new(), Established::new());
    diag::each(dump, states, |socket| match Port::try_from(socket.local_port) {
        Ok(port) if socket.handshake => {
            handshakes.insert(HandshakeId(socket.cookie), port);
        }
        Ok(port) => *established.entry(port).or_default() += 1,
        Err(_) => {}
    })?;
    Ok((handshakes, established))
}

/// The connections of one port over one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Handshakes under way.
    pub handshakes: u64,
    /// Established connections, those that nobody has accepted yet included.
    pub established: u64,
}

/// Counts the connections of some TCP ports, those of both families apart. For people: nothing is decided by it. It costs the
/// kernel walks over the machine's whole table, one for each family.
///
/// # Errors
///
/// In words for the operator, if the kernel does not answer.
pub fn census(ports: &BTreeSet<Port>) -> Result<BTreeMap<(Port, Family), Census>, String> {
    let mut census: BTreeMap<(Port, Family), Census> = ports
        .iter()
        .filter(|port| port.protocol() == Protocol::Tcp)
        .flat_map(|port| Family::ALL.map(|family| ((*port, family), Census::default())))
        .collect();
    let mut dump = diag::open().map_err(|error| error.to_string())?;
    diag::each(&mut dump, States::Connections, |socket| {
        let Ok(port) = Port::try_from(socket.local_port) else { return };
        let Some(counted) = census.get_mut(&(port, family_of(socket.local))) else { return };
        let count = if socket.handshake { &mut counted.handshakes } else { &mut counted.established };
        *count += 1;
    })
    .map_err(|error| error.to_string())?;
    Ok(census)
}

/// The family of the packets: a socket of both families has an IPv4 client behind a mapped address.
fn family_of(address: IpAddr) -> Family {
    match address.to_canonical() {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
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
        let none = BTreeSet::new();
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = Port::try_from(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(read(Depth::Listeners, &none).unwrap().listeners.get(&port), Some(&0));
        let client = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        let sockets = read(Depth::Connections, &none).unwrap();
        assert_eq!(sockets.listeners.get(&port), Some(&1));
        assert_eq!(sockets.connections.unwrap().established.unwrap().get(&port), Some(&1));
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(read(Depth::Listeners, &none).unwrap().listeners.get(&port), Some(&0));
        drop((client, accepted, listener));
        assert!(!read(Depth::Listeners, &none).unwrap().listeners.contains_key(&port));
    }

    #[test]
    fn the_census_tells_families_apart_also_of_a_listener_of_both() {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let number = listener.local_addr().unwrap().port();
        let port = Port::try_from(number).unwrap();
        let clients = ["127.0.0.1", "127.0.0.1", "::1"].map(|address| TcpStream::connect((address, number)).unwrap());
        let census = census(&[port].into()).unwrap();
        let of = |family| census.get(&(port, family)).unwrap().established;
        assert_eq!((of(Family::V4), of(Family::V6)), (2, 1));
        drop((clients, listener));
    }

    #[test]
    fn shows_a_watched_udp_port_while_a_socket_has_it() {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = Port::try_from(socket.local_addr().unwrap().port()).unwrap().of(Protocol::Udp);
        let watched = BTreeSet::from([port]);
        assert_eq!(read(Depth::Listeners, &watched).unwrap().listeners.get(&port), Some(&0));
        assert_eq!(read(Depth::Listeners, &BTreeSet::new()).unwrap().listeners.get(&port), None, "nobody asked");
        drop(socket);
        assert_eq!(read(Depth::Listeners, &watched).unwrap().listeners.get(&port), None);
    }

    #[test]
    fn a_listener_that_closes_leaves_its_connections_behind() {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = Port::try_from(listener.local_addr().unwrap().port()).unwrap();
        let client = TcpStream::connect(("127.0.0.1", port.number())).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        drop(listener);
        let established =
            |also: &BTreeSet<Port>| read(Depth::Connections, also).unwrap().connections.unwrap().established.unwrap();
        assert_eq!(established(&[port].into()).get(&port), Some(&1));
        assert_eq!(established(&BTreeSet::new()).get(&port), None);
        drop((client, accepted));
    }
}
