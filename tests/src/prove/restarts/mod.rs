//! Rolling restarts of a Deployment on a real kubelet, under clients on every node.

pub mod proof;
mod round;

pub use self::round::{Plan, Round, verdict_in};
