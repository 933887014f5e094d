//! The confirmation and routing rules, searched exhaustively in a bounded world: one API with the slices of the pod's
//! Service and the fence's marker, one node's kube-proxy as late, as restarted and as unlucky as its assumptions allow,
//! and the agent's real [`lastsyn::core::routing`] and [`lastsyn::core::confirm`].
//!
//! *From the verdict on, with the API standing still at that moment, the node's rules never route to the pod, now or
//! later.* [`sound`] has each kind of evidence, which must hold in the whole bounded space; [`rolling`] the same through
//! a rolling update, in which a confirmation outlives writes that are not relevant; [`broken`] has simpler rules and
//! missing assumptions, which must fail, with their shortest traces. [`rounds`] has the fence as it is built, with several
//! drains and another writer.
//!
//! Time is in ticks. An assumed bound is closed (what takes one tick may happen at the next), and the agent's waits are
//! one nanosecond longer: two things at one instant have no order.
//!
//! `cargo xtask model` runs all of it and shows what came of it; `LASTSYN_MODEL=deep` searches larger worlds.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

mod agent;
mod api;
mod broken;
mod feed;
mod fence;
mod kube_proxy;
mod naive;
mod rolling;
mod rounds;
mod search;
mod service;
mod setting;
mod sound;
mod watch;
mod witness;
mod words;
mod world;
