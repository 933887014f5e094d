//! The nightly toolchain that builds the kernel programs.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::process;

/// Names the toolchain to use in place of `nightly`, for example one with a date.
const TOOLCHAIN_VARIABLE: &str = "LASTSYN_NIGHTLY";

/// An installed nightly toolchain.
#[derive(Debug)]
pub(crate) struct Nightly {
    name: String,
    sysroot: PathBuf,
    version: Version,
}

/// What `rustc -vV` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// The first line without the program's name: release, commit and date.
    pub(crate) full: String,
    /// The whole commit hash.
    pub(crate) commit: String,
    /// The triple that the toolchain runs on.
    pub(crate) host: String,
    /// LLVM's version, for example `22.1.4`.
    pub(crate) llvm: String,
}

// === impl Nightly ===

impl Nightly {
    /// Finds the toolchain through rustup.
    pub(crate) fn find() -> Result<Self> {
        let name = env::var(TOOLCHAIN_VARIABLE).unwrap_or_else(|_| "nightly".to_owned());
        let verbose = process::read(rustup_run(&name, "rustc").arg("-vV")).with_context(|| {
            format!(
                "the Rust toolchain `{name}` is needed to build the kernel programs and does not run. Install it with \
                 `rustup toolchain install {name} --profile minimal --component clippy,rustfmt`, or name another in \
                 {TOOLCHAIN_VARIABLE}"
            )
        })?;
        let version = Version::parse(&verbose)?;
        if !version.full.contains("nightly") {
            bail!(
                "the toolchain `{name}` is rustc {}: building `core` for the BPF target needs a nightly",
                version.full
            );
        }
        let sysroot = process::read(rustup_run(&name, "rustc").args(["--print", "sysroot"]))?.into();
        Ok(Self { name, sysroot, version })
    }

    /// A program of the toolchain, or one that loads the toolchain's libraries as `bpf-linker` does.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        rustup_run(&self.name, program)
    }

    /// The name rustup knows it by.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// Where the toolchain's libraries are.
    pub(crate) fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// Where the sources of the standard library belong. They need not be there.
    pub(crate) fn library_sources(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library")
    }

    /// A program that the toolchain brings for its own use, such as `rust-objcopy`.
    pub(crate) fn internal_program(&self, program: &str) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.version.host).join("bin").join(program)
    }
}

fn rustup_run(toolchain: &str, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("rustup");
    command.arg("run").arg(toolchain).arg(program.as_ref());
    // This program runs under the stable cargo, whose choices must not reach the other toolchain.
    for variable in ["RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command.env("RUST_BACKTRACE", "0"); // rustup would add where in its own code it failed
    command
}

// === impl Version ===

impl Version {
    fn parse(verbose: &str) -> Result<Self> {
        let field = |name: &str| {
            verbose
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::to_owned)
                .with_context(|| format!("`rustc -vV` has no line `{name}`:\n{verbose}"))
        };
        let first = verbose.lines().next().unwrap_or_default();
        Ok(Self {
            full: first.strip_prefix("rustc ").unwrap_or(first).to_owned(),
            commit: field("commit-hash")?,
            host: field("host")?,
            llvm: field("LLVM version")?,
        })
    }

    /// LLVM's major version, by which `bpf-linker` names its features.
    pub(crate) fn llvm_major(&self) -> &str {
        self.llvm.split('.').next().unwrap_or(&self.llvm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbose_version_is_read() {
        let version = Version::parse(
            "rustc 1.97.0-nightly (e50aa6fba 2026-05-19)\nbinary: rustc\n\
             commit-hash: e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a\ncommit-date: 2026-05-19\n\
             host: x86_64-unknown-linux-gnu\nrelease: 1.97.0-nightly\nLLVM version: 22.1.4",
        )
        .unwrap();
        assert_eq!(version.full, "1.97.0-nightly (e50aa6fba 2026-05-19)");
        assert_eq!(version.commit, "e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a");
        assert_eq!(version.host, "x86_64-unknown-linux-gnu");
        assert_eq!(version.llvm_major(), "22");
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = Version::parse("rustc 1.97.0-nightly").unwrap_err().to_string();
        assert!(error.contains("commit-hash"), "{error}");
    }
}
