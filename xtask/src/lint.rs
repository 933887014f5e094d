//! `cargo xtask lint`: formatting, clippy on both targets, documentation, the length of files, and what dependencies are.

mod dependencies;
mod file_length;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::{
    nightly::Nightly,
    object::{self, compile},
    process, setup, workspace,
};

/// Runs every check, also after one has failed: each says something of its own.
pub(crate) fn run(root: &Path) -> Result<()> {
    let toolchain = setup::kernel_toolchain()?;
    let results = [
        formatting(root),
        file_length::check(root),
        dependencies::check(root),
        clippy(root),
        clippy_for_the_kernel(root, &toolchain.nightly),
        documentation(root),
    ];
    let failures: Vec<_> = results.into_iter().filter_map(|result| Some(format!("{:#}", result.err()?))).collect();
    if !failures.is_empty() {
        bail!("{}", failures.join("\n  and: "));
    }
    Ok(())
}

fn formatting(root: &Path) -> Result<()> {
    process::run(workspace::cargo(root).args(["fmt", "--all", "--check"])).context("`cargo fmt --all` mends this")
}

fn clippy(root: &Path) -> Result<()> {
    process::run(
        workspace::cargo(root)
            .args(["clippy", "--workspace", "--exclude", object::PACKAGE, "--all-targets", "--locked"])
            .args(["--", "-D", "warnings"]),
    )
}

/// The kernel programs have a panic handler of their own, so that they cannot be checked together with the rest.
fn clippy_for_the_kernel(root: &Path, nightly: &Nightly) -> Result<()> {
    process::read(nightly.command("cargo").args(["clippy", "--version"])).with_context(|| {
        format!("clippy is missing: `rustup component add clippy --toolchain {}` gets it", nightly.name())
    })?;
    process::run(
        compile::cargo(root, nightly)
            .args(["clippy", "--release", "--locked", "--package", object::PACKAGE, "--target", object::TARGET])
            .arg("-Zbuild-std=core")
            .arg("--target-dir")
            .arg(root.join("target/ebpf-clippy"))
            .args(["--", "-D", "warnings"]),
    )
}

fn documentation(root: &Path) -> Result<()> {
    process::run(
        workspace::cargo(root)
            .args(["doc", "--workspace", "--exclude", object::PACKAGE, "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}
