//! `cargo-mutants`, built once into the cache: only `cargo xtask mutate` needs it.

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use super::cache;
use crate::{process, workspace};

/// Another version makes other mutants: a change here goes with new results.
pub(crate) const VERSION: &str = "27.1.0";

/// The program's path, after it has been built where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("cargo-mutants-{VERSION}"));
    let stamp = format!("cargo-mutants {VERSION}\n");
    let program = directory.join("bin/cargo-mutants");
    let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp) && program.is_file();
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have built it while this one waited.
        if !is_there() {
            eprintln!("Building cargo-mutants {VERSION} (a minute or two)");
            cache::replace(&directory, &stamp, build)?;
        }
    }
    Ok(program)
}

fn build(destination: &std::path::Path) -> Result<()> {
    let target = destination.join("target");
    let mut install = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    install
        .args(["install", "--quiet", "cargo-mutants", "--version", VERSION, "--locked", "--root"])
        .arg(destination)
        .arg("--target-dir")
        .arg(&target)
        // The home directory has no workspace and no configuration of this repository.
        .current_dir(workspace::home()?);
    process::run(&mut install)?;
    fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    let version = process::read(Command::new(destination.join("bin/cargo-mutants")).args(["mutants", "--version"]))
        .context("the new cargo-mutants does not run")?;
    if version != format!("cargo-mutants {VERSION}") {
        bail!("the new cargo-mutants calls itself `{version}`, not {VERSION}");
    }
    Ok(())
}
