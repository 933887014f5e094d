//! `cargo xtask lab`: a real Kubernetes on this machine that stays up.

use std::path::Path;

use anyhow::Result;

use crate::{
    lab_program::{self, Profile},
    setup,
};

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    setup::programs(setup::Purpose::Test)?;
    setup::kubernetes()?;
    lab_program::run(root, "lab", Profile::Debug, arguments)
}
