//! Programs of crates.io that one verb alone needs, each built once into the cache.

use std::{env, fs, path::Path, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use super::cache;
use crate::{process, workspace};

/// A subcommand of cargo.
pub(crate) struct CargoProgram {
    name: &'static str,
    pub(crate) version: &'static str,
}

/// Another version makes other mutants: a change here goes with new results.
pub(crate) const MUTANTS: CargoProgram = CargoProgram { name: "mutants", version: "27.1.0" };

/// Turns what the compiler's instrumentation wrote into lines and regions.
pub(crate) const LLVM_COV: CargoProgram = CargoProgram { name: "llvm-cov", version: "0.9.1" };

impl CargoProgram {
    /// The program's path, after it has been built where it was not there.
    pub(crate) fn ensure(&self) -> Result<PathBuf> {
        let (package, version) = (self.package(), self.version);
        let directory = cache::directory()?.join(format!("{package}-{version}"));
        let stamp = format!("{package} {version}\n");
        let program = directory.join("bin").join(&package);
        let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp) && program.is_file();
        if !is_there() {
            let _lock = cache::lock()?;
            // Another run may have built it while this one waited.
            if !is_there() {
                eprintln!("Building {package} {version} (a minute or two)");
                cache::replace(&directory, &stamp, |destination| self.build(destination))?;
            }
        }
        Ok(program)
    }

    fn package(&self) -> String {
        format!("cargo-{}", self.name)
    }

    fn build(&self, destination: &Path) -> Result<()> {
        let (package, version) = (self.package(), self.version);
        let target = destination.join("target");
        let mut install = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        install
            .args(["install", "--quiet", &package, "--version", version, "--locked", "--root"])
            .arg(destination)
            .arg("--target-dir")
            .arg(&target)
            // The home directory has no workspace and no configuration of this repository.
            .current_dir(workspace::home()?);
        process::run(&mut install)?;
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
        let said = process::read(Command::new(destination.join("bin").join(&package)).args([self.name, "--version"]))
            .with_context(|| format!("the new {package} does not run"))?;
        if said != format!("{package} {version}") {
            bail!("the new {package} calls itself `{said}`, not {version}");
        }
        Ok(())
    }
}
