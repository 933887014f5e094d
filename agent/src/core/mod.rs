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
//! | S1 bound | [`drain`] |
//! | S3 witness | [`witness`], [`report`] |
//! | W1-W8 routing, C10 the relevant change | [`routing`] |
//! | S7 leaving | [`stop`] |
//! | S9 the watched set | [`watched`] |

pub mod clock;
pub mod cluster;
pub mod drain;
mod ending;
pub mod event;
mod handshake;
mod hold;
pub mod journal;
pub mod listener;
mod quiet;
mod report;
mod retry;
pub mod routing;
pub mod settings;
mod stop;
pub mod verdict;
pub mod view;
mod watched;
mod witness;
