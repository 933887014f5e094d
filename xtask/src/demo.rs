//! `cargo xtask demo`: the product's main job on this machine, from nothing to the verdict.

use std::path::Path;

use anyhow::Result;

use crate::lab_program::{self, Profile};

/// The debug build is the default: it is there within seconds, and the agent of a demonstration is idle.
pub(crate) fn run(root: &Path, profile: Profile, arguments: &[String]) -> Result<()> {
    lab_program::run(root, "demo", profile, arguments)
}
