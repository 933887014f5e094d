//! Who put a filter in place, and whether that agent still runs.
//!
//! A filter stays when its agent is killed. It carries a number of the agent that made it, and as long as that agent runs,
//! it has an abstract unix socket of that number (`unix(7)`), which goes with the process, however that ends. Such sockets
//! belong to the network namespace, as the filters do, so that agents of different containers see each other.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixDatagram},
    },
};

/// The bit of a filter's handle that says: with it came the discipline.
const MADE_DISCIPLINE: u32 = 1;
/// How often another number is tried.
const TRIES: u64 = 16;

/// The number of an agent: the handle of its filters, but for the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u32);

/// A number, as long as the agent runs.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) owner: Owner,
    _socket: UnixDatagram,
}

impl Owner {
    /// Of a filter's handle.
    pub(super) fn of(handle: u32) -> Self {
        Self(handle & !MADE_DISCIPLINE)
    }

    /// The handle of its filter.
    pub(super) fn handle(self, made_discipline: bool) -> u32 {
        self.0 | if made_discipline { MADE_DISCIPLINE } else { 0 }
    }

    /// Whether it still runs. Where that cannot be told it may.
    pub(super) fn runs(self) -> bool {
        !matches!(self.bind(), Ok(_socket))
    }

    fn bind(self) -> io::Result<UnixDatagram> {
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(format!("lastsyn/clsact/{:08x}", self.0))?)
    }
}

/// Whether the discipline came with the filter of this handle.
pub(super) fn made_discipline(handle: u32) -> bool {
    handle & MADE_DISCIPLINE != 0
}

impl Claim {
    /// A number that no other agent of the namespace has.
    pub(super) fn new() -> io::Result<Self> {
        let random = RandomState::new();
        let mut outcome = Err(io::ErrorKind::AddrInUse.into());
        for attempt in 0..TRIES {
            let [.., a, b, c, d] = random.hash_one(attempt).to_be_bytes();
            let owner = Owner::of(u32::from_be_bytes([a, b, c, d]));
            if owner.0 == 0 {
                continue;
            }
            outcome = owner.bind().map(|socket| Self { owner, _socket: socket });
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_runs_as_long_as_it_has_its_claim() {
        let claim = Claim::new().unwrap();
        let owner = claim.owner;
        for made in [false, true] {
            let handle = owner.handle(made);
            assert_eq!((Owner::of(handle), made_discipline(handle)), (owner, made));
        }
        assert!(owner.runs());
        assert_ne!(Claim::new().unwrap().owner, owner);
        drop(claim);
        assert!(!owner.runs());
    }
}
