//! What the agent tells about itself.

pub mod log;
pub mod metrics;
