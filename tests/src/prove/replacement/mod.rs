//! A rolling replacement of the pods behind Services of every kind, under clients on every node and outside of them.

pub mod proof;
mod round;

pub use self::round::{Plan, Round};
