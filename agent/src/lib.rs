//! lastsyn holds a Kubernetes preStop hook exactly until the last new connection has arrived.
//!
//! The way of the data is one direction: the kernel's evidence becomes events of the [`core`], which is pure and
//! decides; what it decides is carried out around it.

pub mod cli;
pub mod client;
pub mod cluster;
pub mod config;
pub mod core;
pub mod drive;
pub mod fence;
mod netfilter;
mod netlink;
pub mod observe;
pub mod proxy;
pub mod report;
pub mod sensor;
pub mod server;
pub mod sockets;
pub mod state;
pub mod telemetry;
