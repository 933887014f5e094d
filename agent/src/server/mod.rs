//! What the agent answers over HTTP.

pub mod status;
