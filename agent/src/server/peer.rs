//! S10: who may call the hook and change the log level.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::sensor::Asker;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody in the network: the other end and ours.
    Network(SocketAddr, Option<SocketAddr>),
    /// Somebody who can open the unix socket: the file system decides who.
    UnixSocket,
}

/// Whether a connection from outside may last: somebody was let in over it who waits, such as the node's kubelet.
#[derive(Clone, Debug, Default)]
pub(crate) struct MayLast(Arc<AtomicBool>);

impl MayLast {
    pub(super) fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Peer {
    /// The connection as the kernel may know who opened it.
    pub(super) fn asker(self) -> Option<Asker> {
        match self {
            Self::Network(remote, Some(local)) => Some(Asker { remote, local }),
            Self::Network(_, None) | Self::UnixSocket => None,
        }
    }

    /// The address in the network, IPv4 as such.
    pub(crate) fn address(self) -> Option<IpAddr> {
        match self {
            Self::UnixSocket => None,
            Self::Network(address, _) => Some(address.ip().to_canonical()),
        }
    }

    /// Loopback, the pod's own addresses and the unix socket are the pod itself.
    ///
    /// A foreign sender cannot claim these addresses: the kernel drops packets from outside with a loopback source
    /// (RFC 1122 section 3.2.1.3), and an answer to one of the pod's own addresses never leaves the pod.
    pub(super) fn is_the_pod(self, own: &[IpAddr]) -> bool {
        match self {
            Self::UnixSocket => true,
            Self::Network(address, _) => {
                let address = address.ip().to_canonical();
                address.is_loopback() || own.contains(&address)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s10_only_the_pod_itself_may_call_the_hook() {
        let own: Vec<IpAddr> = vec!["10.1.2.3".parse().unwrap(), "fd00::3".parse().unwrap()];
        let allowed = |text: &str| Peer::Network(text.parse().unwrap(), None).is_the_pod(&own);
        assert!(Peer::UnixSocket.is_the_pod(&[]));
        for address in
            ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "10.1.2.3:1", "[::ffff:10.1.2.3]:1", "[fd00::3]:1"]
        {
            assert!(allowed(address), "{address}");
        }
        for address in ["10.1.2.4:1", "[fd00::4]:1", "[::ffff:10.1.2.4]:1", "8.8.8.8:1", "[fe80::1]:1"] {
            assert!(!allowed(address), "{address}");
        }
    }
}
