//! The static program: it runs where there is no library, in an image that has nothing else and in a server's container.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{process, workspace};

/// A processor that the program is built for.
pub(super) struct Target {
    architecture: &'static str,
    /// As rustc names it.
    pub(super) triple: &'static str,
    /// As images name it.
    pub(super) platform: &'static str,
    /// What links for it where it is not this machine's.
    linker: &'static str,
}

const TARGETS: [Target; 2] = [
    Target {
        architecture: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        platform: "amd64",
        linker: "x86_64-linux-gnu-gcc",
    },
    Target {
        architecture: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        platform: "arm64",
        linker: "aarch64-linux-gnu-gcc",
    },
];

// === impl Target ===

impl Target {
    /// By the processor's name; this machine's without one.
    pub(super) fn of(architecture: Option<&str>) -> Result<Self> {
        let name = architecture.unwrap_or(env::consts::ARCH);
        let Some(target) = TARGETS.into_iter().find(|target| target.architecture == name) else {
            bail!("the program is not built for `{name}`: add it to TARGETS");
        };
        if !target.runs_here() && process::find_program(target.linker).is_none() {
            bail!("{} is missing to link for {name}: Debian's package is gcc-{name}-linux-gnu", target.linker);
        }
        Ok(target)
    }

    /// Whether this machine runs what is built for it.
    pub(super) fn runs_here(&self) -> bool {
        self.architecture == env::consts::ARCH
    }

    /// What files of this version are called, such as `lastsyn-0.1.0-x86_64`.
    pub(super) fn release_name(&self) -> String {
        format!("lastsyn-{}-{}", env!("CARGO_PKG_VERSION"), self.architecture)
    }
}

/// Builds it, and returns its file below the `target` directory.
pub(super) fn build(root: &Path, target: &Target) -> Result<PathBuf> {
    let directory = root.join("target/static");
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    if !target.runs_here() {
        flags.push(format!("-Clinker={}", target.linker));
    }
    flags.extend(remapped_paths(root)?);
    let mut cargo = workspace::cargo(root);
    without_the_users_settings(&mut cargo);
    process::run(
        cargo
            .args(["build", "--release", "--locked", "--package", "lastsyn", "--bin", "lastsyn"])
            // Also where it is this machine's: the flags are then for the program alone, and not for what only builds it.
            .args(["--target", target.triple])
            .arg("--target-dir")
            .arg(&directory)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
            // C code of dependencies: the directory that it is compiled in is written into its debug information.
            .env("CFLAGS", format!("-ffile-prefix-map={}=/lastsyn", root.display())),
    )?;
    let binary = directory.join(target.triple).join("release/lastsyn");
    check(&binary)?;
    Ok(binary)
}

/// A program that asks for an interpreter is not static, whatever flags it was built with.
fn check(binary: &Path) -> Result<()> {
    let headers = process::read(Command::new("readelf").args(["--program-headers", "--wide"]).arg(binary))?;
    if headers.contains("INTERP") {
        bail!("{} is linked with libraries of this machine:\n{headers}", binary.display());
    }
    Ok(())
}

/// What users' environments say about flags and profiles is not a part of a version.
fn without_the_users_settings(cargo: &mut Command) {
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let decides = ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_"].iter().any(|prefix| name.starts_with(prefix));
        if decides || matches!(&*name, "RUSTFLAGS" | "CARGO_INCREMENTAL" | "CFLAGS") {
            cargo.env_remove(&*name);
        }
    }
}

/// Flags that put fixed names in the place of this machine's paths. Of several that match, rustc takes the last.
fn remapped_paths(root: &Path) -> Result<Vec<String>> {
    let home = workspace::cargo_home()?;
    let mut paths = vec![(home.clone(), "/cargo"), (root.to_owned(), "/lastsyn")];
    // Each registry has a directory named by a hash of its address, which differs where a mirror stands in.
    let registries = home.join("registry/src");
    if registries.is_dir() {
        for entry in fs::read_dir(&registries).with_context(|| format!("cannot list {}", registries.display()))? {
            paths.push((entry?.path(), "/registry"));
        }
    }
    Ok(paths.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect())
}
