//! A rollout: a pod's server is stopped while clients go on and the nodes still send them to the pod for a while.

pub mod proof;
mod round;
pub mod servers;

pub use self::round::{Plan, Round};
