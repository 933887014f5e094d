//! The programs that the lab runs, and the rights that it needs.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail, ensure};

/// Where Debian keeps system programs, which the search path of a root shell does not always name.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The file of a program.
///
/// # Errors
///
/// When it is not installed.
pub fn find(program: &str) -> Result<PathBuf> {
    if program.contains('/') {
        return Ok(PathBuf::from(program));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(SYSTEM_DIRECTORIES.map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|file| is_executable(file))
        .map_or_else(
            || bail!("the lab needs the program `{program}`, which is not installed: run `cargo xtask setup`"),
            Ok,
        )
}

/// The file of a program that `cargo xtask setup` keeps in the user's cache, such as `envoy-1.40.0/envoy`.
///
/// # Errors
///
/// When it is not there.
pub fn cached(program: &str) -> Result<PathBuf> {
    let file = cache().join(program);
    ensure!(is_executable(&file), "the lab needs {}, which is not there: run `cargo xtask setup`", file.display());
    Ok(file)
}

/// A directory that `cargo xtask setup` keeps in the user's cache.
///
/// # Errors
///
/// When it is not there.
pub(crate) fn cached_directory(name: &str) -> Result<PathBuf> {
    let directory = cache().join(name);
    ensure!(directory.is_dir(), "the lab needs {}, which is not there: run `cargo xtask setup`", directory.display());
    Ok(directory)
}

fn cache() -> PathBuf {
    let cache = match env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"),
    };
    cache.join("lastsyn")
}

/// Checks what every lab needs, so that the first failure is a clear one.
///
/// # Errors
///
/// When the lab does not run as root, or a program is missing.
pub(crate) fn preflight() -> Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the lab makes network namespaces and needs root: run the tests with `cargo xtask test` as root, after `cargo \
         xtask setup`"
    );
    for program in ["ip", "nsenter", "nft"] {
        find(program)?;
    }
    Ok(())
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_or_the_way_to_get_them_is_told() {
        assert!(find("sh").unwrap().is_absolute());
        let error = find("no-such-program").unwrap_err().to_string();
        assert!(error.contains("no-such-program") && error.contains("cargo xtask setup"), "{error}");
    }
}
