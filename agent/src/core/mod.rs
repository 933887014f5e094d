//! The decision, pure: no clock, no I/O, no async, no randomness. Time comes in as an argument.
//!
//! Read [`drain`] first. Each rule of the design lives in one place:
//!
//! | rule | place |
//! | --- | --- |
//! | E1 floor, and the one way to an end | [`ending`] |
//! | E2 quiet | [`quiet`] |
//! | E2a retry | [`retry`] |
//! | E3 handshakes, E4 connections | [`handshake`] |
//! | S1 bound, S2 a drain begins with nothing | [`ending`], [`under_way`] |
//! | S3 a sensor that is not known to see everything | [`witness`], [`quiet`], [`report`] |
//! | E5 routing, E6 load balancer, C9 the consistent read | [`withdrawal`], [`load_balancer`] |
//! | W1-W8 routing, C10 the relevant change | [`routing`] |
//! | C1-C8, C10-C14 confirmation | [`confirm`] |
//! | S4 the server in the pod is told, the phases | [`phase`] |
//! | S5 a container that is only restarted | [`termination`] |
//! | S7 leaving, and what comes after the end | [`stop`], [`late`] |
//! | S9 the watched set | [`watched`] |
//!
//! What of kubelet's probes can be told by their pace alone is in [`pace`].

pub mod class;
pub mod clock;
pub mod cluster;
pub mod confirm;
mod counters;
mod counts;
pub mod drain;
mod ending;
pub mod event;
mod follow;
mod handshake;
mod hold;
pub mod journal;
mod late;
pub mod listener;
pub mod load_balancer;
pub mod pace;
pub mod phase;
pub mod probe;
mod quiet;
mod reading;
pub mod recording;
mod report;
mod retry;
pub mod routing;
pub mod settings;
mod stop;
pub mod termination;
#[cfg(test)]
mod tests;
mod under_way;
pub mod verdict;
pub mod view;
mod watched;
mod withdrawal;
mod witness;
