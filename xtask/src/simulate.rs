//! `cargo xtask simulate`: drains in a simulated cluster, by a build that is fast and still checks itself.

use std::path::Path;

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    process::run_for_result(
        workspace::cargo(root)
            .args(["run", "--quiet", "--locked", "--package", "lastsyn-tests", "--profile", "simulate"])
            .args(["--bin", "simulate", "--"])
            .args(arguments),
    )
}
