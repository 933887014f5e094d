//! The confirmation rules, searched exhaustively in a bounded world: one API with the pod's slices and the fence's
//! marker, one node's kube-proxy as late, as restarted and as unlucky as its assumptions allow, and the agent's real
//! [`lastsyn::core::confirm`].
//!
//! *From the verdict on, with the API standing still at that moment, the node's rules never route to the pod, now or
//! later.* [`sound`] has each kind of evidence, which must hold in the whole bounded space; [`broken`] has simpler rules
//! and missing assumptions, which must fail, with their shortest traces.
//!
//! Time is in ticks. An assumed bound is closed (what takes one tick may happen at the next), and the agent's waits are
//! one nanosecond longer: two things at one instant have no order.
//!
//! `LASTSYN_MODEL=deep` searches larger worlds.

#![expect(clippy::indexing_slicing, reason = "a failing helper fails its test")]

mod agent;
mod api;
mod broken;
mod feed;
mod fence;
mod kube_proxy;
mod naive;
mod search;
mod setting;
mod sound;
mod world;
