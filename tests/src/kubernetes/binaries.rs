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
    made(directory()?.join(program))
}

/// The file of a program that a kubelet needs beside itself.
///
/// # Errors
///
/// When it has not been fetched.
pub(crate) fn find_runtime(program: &str) -> Result<PathBuf> {
    made(runtime_directory()?.join(program))
}

fn made(file: PathBuf) -> Result<PathBuf> {
    ensure!(
        file.is_file(),
        "the lab needs {}, which is not there: run `cargo xtask setup --kubernetes` (20 minutes the first time)",
        file.display()
    );
    Ok(file)
}

/// Where the programs of Kubernetes are.
pub(crate) fn directory() -> Result<PathBuf> {
    below(&format!("kubernetes-{}", version()?))
}

/// Where containerd and its like are.
pub(crate) fn runtime_directory() -> Result<PathBuf> {
    below("container-runtime")
}

fn below(name: &str) -> Result<PathBuf> {
    if let Some(directory) = env::var_os(OWN_PROGRAMS) {
        return Ok(directory.into());
    }
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => env::home_dir().context("the home directory is not known: set HOME")?.join(".cache"),
    };
    Ok(cache.join("lastsyn").join(name))
}
