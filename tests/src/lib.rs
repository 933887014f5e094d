//! The lab: a small vocabulary in which a promise's test reads like the promise.
//!
//! A [`World`] is a client, a node that forwards as a node's proxy does, and two pods; a [`Pair`] is a client and one pod
//! on one wire, for tests that count exactly. Each [`Host`] is a network namespace. Servers ([`HaProxy`], [`Server`]),
//! clients ([`PacedClient`], [`Connection`]), forged packets ([`raw`]) and the agent itself ([`Agent`]) are started in a
//! host.
//!
//! Everything is named after this process and a counter, so labs work side by side. Everything is torn down when it is
//! dropped, also by a panic; what a killed process left is swept when the next lab starts. Nothing outside namespaces
//! that a lab made is touched.
//!
//! The lab needs root and a few programs; `cargo xtask setup` gets them.

pub mod agent;
pub mod agent_log;
pub mod bench;
pub mod bpf;
pub mod client;
pub mod clock;
pub mod control_group;
pub mod counted;
pub mod counters;
pub mod demo;
pub mod envoy;
pub mod haproxy;
pub mod helm;
pub mod host;
pub mod http;
pub mod kubernetes;
pub mod lab;
mod leftovers;
pub mod link;
pub mod manifests;
pub mod nginx;
pub mod openmetrics;
pub mod pair;
pub mod pod_network;
pub mod process;
mod programs;
pub mod prometheus;
pub mod prove;
pub mod quic;
pub mod raw;
pub mod real_server;
pub mod server;
pub mod simulator;
pub mod sockets;
pub mod tap;
pub mod tcx;
pub mod traffic_control;
pub mod wait;
pub mod world;

pub use agent::{Agent, AgentConfig, DrainAnswer, DrainCall};
pub use client::{Attempt, Connection, KeepAlive, Outcome, PacedClient, Summary, connect_from, connect_once};
pub use clock::monotonic_now;
pub use control_group::PodGroup;
pub use counted::Counted;
pub use envoy::Envoy;
pub use haproxy::{Bind, HaProxy, HaProxyConfig, Release};
pub use host::Host;
pub use lab::Lab;
pub use link::{End, Families, Link};
pub use nginx::Nginx;
pub use pair::Pair;
pub use pod_network::PodNetwork;
pub use process::Process;
pub use programs::{cached as program_of_the_cache, find as program};
pub use prometheus::{Prometheus, promtool};
pub use quic::{QuicClient, QuicServer};
pub use real_server::{RealServer, ServerKind};
pub use rustix::process::Signal;
pub use server::{Server, ServerConfig};
pub use wait::await_condition;
pub use world::{Pod, World, WorldConfig};
