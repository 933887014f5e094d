//! What the kernel programs and the agent share: how a packet is read, and how the counts are laid out.
//!
//! The agent embeds the object that was built with this crate, so both sides always agree on the layout; a change of it
//! needs a new object (`cargo xtask build-ebpf`).

#![no_std]
#![expect(
    clippy::inline_always,
    reason = "the verifier looks at one function at a time: a call in between loses what it knows of the offsets"
)]

pub mod counters;
pub mod packet;
pub mod socket;
pub mod sources;
