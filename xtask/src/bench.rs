//! `cargo xtask bench`: measures the agent as it is shipped.

use std::path::Path;

use anyhow::Result;

use crate::lab_program::{self, Profile};

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    lab_program::run(root, "bench", Profile::Release, arguments)
}
