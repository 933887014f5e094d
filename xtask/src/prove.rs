//! `cargo xtask prove`: shows one promise with full numbers, on the agent as it is shipped.

use std::path::Path;

use anyhow::Result;

use crate::lab_program::{self, Profile};

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    lab_program::run(root, "prove", Profile::Release, arguments)
}
