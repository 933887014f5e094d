//! Where things are in the repository, and how its own cargo is called.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

/// The repository's root, from where this program was built.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.parent().context("the xtask package has no directory above it")?;
    root.canonicalize()
        .with_context(|| format!("cannot find the repository at {}: was it moved? Build xtask again", root.display()))
}

/// The cargo that runs this program, or the one on the path, in the repository's root.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Cargo's home: where it keeps the sources of dependencies.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    match env::var_os("CARGO_HOME") {
        Some(home) => Ok(home.into()),
        None => Ok(home()?.join(".cargo")),
    }
}

/// The user's home directory.
pub(crate) fn home() -> Result<PathBuf> {
    env::home_dir().context("the home directory is not known: set HOME")
}

/// Every file below `directory` in the order of their names, but for hidden ones, what an editor leaves behind, and
/// what cargo builds.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(directory, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", directory.display()))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name.ends_with('~') || name == "target" {
            continue;
        }
        let path = entry.path();
        if entry.file_type().with_context(|| format!("cannot read {}", path.display()))?.is_dir() {
            collect(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
