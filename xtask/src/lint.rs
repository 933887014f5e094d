//! `cargo xtask lint`: formatting, clippy on both targets, documentation, and the length of files.

mod file_length;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{
    nightly::Nightly,
    object::{self, compile},
    process, setup, workspace,
};

pub(crate) fn run(root: &Path) -> Result<()> {
    let toolchain = setup::kernel_toolchain()?;
    process::run(workspace::cargo(root).args(["fmt", "--all", "--check"])).context("run `cargo fmt --all`")?;
    file_length::check(root)?;
    process::run(workspace::cargo(root).args([
        "clippy",
        "--workspace",
        "--exclude",
        object::PACKAGE,
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    clippy_for_the_kernel(root, &toolchain.nightly)?;
    process::run(
        workspace::cargo(root)
            .args(["doc", "--workspace", "--exclude", object::PACKAGE, "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
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
