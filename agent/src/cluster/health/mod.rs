//! The nodes' health servers: which are asked, how often, and what each answer is.
//!
//! Every node has a task and a connection of its own, so that one that hangs delays nobody else; what they share is the
//! rate ([`Rate`]). A connection is kept open, as it stands for the process behind it (C1), and is given a number that is
//! never used again.

mod answer;
mod connection;
mod local;
mod node;
mod pace;

pub use answer::{Asked, local_endpoints, local_endpoints_of, outcome};
pub use connection::{Connection, Lost, Reply, connect, ended};
pub use local::{one_of_each, poll as poll_local};
pub use node::{Target, poll};
pub use pace::{Pace, Rate};

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::core::cluster::ConnectionId;

/// The longest body that is read: 64 KiB (C2). kube-proxy's has some 270 bytes.
pub const LONGEST_BODY: usize = 64 << 10;

/// How the servers are asked.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// `routing.poll.interval`: the time between an answer and the next request, at the least.
    pub interval: Duration,
    /// `routing.poll.timeout`: for a connection to come about, and for an answer.
    pub timeout: Duration,
}

/// Gives every connection its number.
#[derive(Debug, Default)]
pub struct Connections(AtomicU64);

impl Connections {
    /// The next number: greater than all before it.
    pub fn next(&self) -> ConnectionId {
        ConnectionId(self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1))
    }
}

#[cfg(test)]
mod tests;
