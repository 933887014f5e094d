//! `cargo xtask prove`: shows one promise with full numbers, on the agent as it is shipped.

use std::path::Path;

use anyhow::Result;

use crate::{
    lab_program::{self, Profile},
    setup,
};

/// What runs in a real Kubernetes.
const IN_KUBERNETES: &[&str] =
    &["fence", "fence-disrupted", "frozen-node", "last-on-node", "replacement", "restarts", "rolling-update"];

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    if arguments.first().is_some_and(|name| IN_KUBERNETES.contains(&name.as_str())) {
        setup::programs(setup::Purpose::Test)?;
        setup::kubernetes()?;
    }
    lab_program::run(root, "prove", Profile::Release, arguments)
}
