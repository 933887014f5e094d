//! The binary as others call it.

#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a failing helper fails its test")]

mod answering;
mod cli;
mod hook;
mod running;
