//! `cargo xtask bench`: measures the agent as it is shipped.

use std::path::Path;

use anyhow::Result;

use crate::{
    lab_program::{self, Profile},
    setup,
};

/// What runs in a real Kubernetes.
const IN_KUBERNETES: &[&str] = &["calm-drain", "fence-scale", "large-cluster"];

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    if arguments.first().is_some_and(|name| IN_KUBERNETES.contains(&name.as_str())) {
        setup::programs(setup::Purpose::Test)?;
        setup::kubernetes()?;
    }
    lab_program::run(root, "bench", Profile::Release, arguments)
}
