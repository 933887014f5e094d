//! The decision, pure: no clock, no I/O, no async, no randomness. Time comes in as an argument.

pub mod listener;
pub mod verdict;
