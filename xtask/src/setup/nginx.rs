//! nginx, for the tests that drain it. Debian's package is unpacked and not installed: installed, it would start a server on
//! port 80 of the machine.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};

use super::cache;
use crate::process;

const PACKAGE: &str = "nginx";
const STAMP: &str = "Debian nginx, unpacked\n";

/// The program, after it has been fetched where it was not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    if let Some(installed) = process::find_program("nginx") {
        return Ok(installed);
    }
    let directory = cache::directory()?.join("nginx");
    let program = directory.join("usr/sbin/nginx");
    let is_there = || cache::stamp(&directory).as_deref() == Some(STAMP) && program.is_file();
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have fetched it while this one waited.
        if !is_there() {
            eprintln!("Getting {PACKAGE} from Debian's mirror, unpacked into the cache");
            cache::replace(&directory, STAMP, |content| {
                super::apt::download(PACKAGE, content)?;
                let package = fs::read_dir(content)?
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
                    .context("apt-get left no package")?;
                process::run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(content))?;
                fs::remove_file(&package).with_context(|| format!("cannot remove {}", package.display()))?;
                let program = content.join("usr/sbin/nginx");
                process::run(Command::new(&program).arg("-v"))
                    .context("nginx does not run: a library of its package is missing on this machine")
            })?;
        }
    }
    Ok(program)
}
