//! The verbs that run a program of the lab: `demo`, `prove`, `bench`.

use std::path::Path;

use anyhow::Result;

use crate::{process, setup, workspace};

/// How the agent and the lab are built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Builds in seconds.
    Debug,
    /// What is shipped, and what figures are measured on.
    Release,
}

/// Gets what the lab needs, builds the agent, and runs the lab's program `name`. Only that program writes to standard
/// output.
pub(crate) fn run(root: &Path, name: &str, profile: Profile, arguments: &[String]) -> Result<()> {
    setup::programs(setup::Purpose::Demo)?;
    let flags: &[&str] = match profile {
        Profile::Debug => &[],
        Profile::Release => &["--release"],
    };
    // Without `--package`, for then dependencies have the features that `cargo build` and `cargo test` give them, and
    // nothing is compiled twice.
    process::run(
        workspace::cargo(root).args(["build", "--quiet", "--locked", "--bin", "lastsyn", "--bin", name]).args(flags),
    )?;
    process::run_for_result(
        workspace::cargo(root)
            .args(["run", "--quiet", "--locked", "--bin", name])
            .args(flags)
            .arg("--")
            .args(arguments),
    )
}
