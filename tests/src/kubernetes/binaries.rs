//! Where `cargo xtask setup --kubernetes` has put the programs.

use std::{env, path::PathBuf};

use anyhow::{Context, Result, ensure};

/// Names a directory that has the programs, in place of the cache's.
const OWN_PROGRAMS: &str = "LASTSYN_KUBERNETES";

/// Decides the version, here and for the setup.
const MODULE: &str = include_str!("../../kubernetes/go.mod");

/// The version of Kubernetes, such as `1.37.2`.
pub(crate) fn version() -> Result<&'static str> {
    MODULE
        .lines()
        .find_map(|line| line.trim().strip_prefix("require k8s.io/kubernetes v"))
        .context("tests/kubernetes/go.mod requires no k8s.io/kubernetes")
}

/// The file of a program of Kubernetes, or of etcd.
///
/// # Errors
///
/// When it has not been made.
pub(crate) fn find(program: &str) -> Result<PathBuf> {
    let file = directory()?.join(program);
    ensure!(
        file.is_file(),
        "the lab needs {}, which is not there: run `cargo xtask setup --kubernetes` (20 minutes the first time)",
        file.display()
    );
    Ok(file)
}

fn directory() -> Result<PathBuf> {
    if let Some(directory) = env::var_os(OWN_PROGRAMS) {
        return Ok(directory.into());
    }
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => env::home_dir().context("the home directory is not known: set HOME")?.join(".cache"),
    };
    Ok(cache.join("lastsyn").join(format!("kubernetes-{}", version()?)))
}
