//! The fence against nodes that stand still, die, are cut off or lag: nothing is called confirmed while a node's rules lead
//! to what was withdrawn. `cargo xtask prove fence` shows it with full numbers.

mod adversary;
pub mod disrupted;
pub mod disruptions;
pub mod proof;
pub mod round;

use anyhow::Result;

use super::frozen_node::{self, Round};
use crate::{
    AgentConfig,
    kubernetes::{Fence, Scene},
};

/// One drain of a new pod with a fence, while a node's kube-proxy stands still.
///
/// # Errors
///
/// When it does not go as planned. Lost connections are no error: they are the result.
pub fn frozen(scene: &Scene, fence: &Fence, name: &str) -> Result<Round> {
    frozen_node::drain_with(scene, name, fence.give_to(AgentConfig::default()))
}
