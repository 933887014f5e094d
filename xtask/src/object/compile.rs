//! Compiles the kernel programs so that the same sources and tools give the same bytes on every machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{FILE, PACKAGE, TARGET};
use crate::{nightly::Nightly, process, workspace};

/// The flags that decide what comes out, apart from the paths of the machine.
///
/// `bpf_target_arch` selects the layout of the registers that probes of functions see. These programs see packets only,
/// so that one object serves every architecture; it is fixed because the default is the building machine's.
const FLAGS: [&str; 3] = [
    "--cfg=bpf_target_arch=\"x86_64\"",
    "-Cdebuginfo=2", // BTF is made from it
    "-Clink-arg=--btf",
];

/// Where it is compiled, below the repository.
const TARGET_DIRECTORY: &str = "target/ebpf";

/// Removes what only a debugger reads. The loader needs BTF, which stays: it lies in sections of its own.
const STRIP: &str = "--strip-debug";

/// The way an object is made, in words that change when the way does. It is a part of the sources' digest.
pub(crate) fn recipe() -> String {
    format!("{TARGET} build-std=core release {} rust-objcopy {STRIP}", FLAGS.join(" "))
}

/// Compiles the programs with `linker`, an installed `bpf-linker`, and returns the path of the stripped object below
/// the `target` directory.
///
/// The dependencies' sources must have been downloaded: their places are part of the flags.
pub(crate) fn compile(root: &Path, nightly: &Nightly, linker: &Path) -> Result<PathBuf> {
    let target_directory = root.join(TARGET_DIRECTORY);
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).to_vec();
    flags.push(format!("-Clinker={}", linker.display()));
    flags.extend(remapped_paths(root, nightly)?);

    let mut build = cargo(root, nightly);
    build
        .args(["build", "--release", "--locked", "--package", PACKAGE, "--target", TARGET, "-Zbuild-std=core"])
        .arg("--target-dir")
        .arg(&target_directory)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    process::run(&mut build).context("the kernel programs do not build")?;

    let output = target_directory.join(TARGET).join("release/lastsyn");
    let stripped = target_directory.join(FILE);
    process::run(nightly.command(nightly.internal_program("rust-objcopy")).arg(STRIP).arg(&output).arg(&stripped))?;
    Ok(stripped)
}

/// Removes what earlier compilations left, so that the next one begins with the sources.
pub(crate) fn clean(root: &Path) -> Result<()> {
    let directory = root.join(TARGET_DIRECTORY);
    fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))
}

/// The nightly's cargo in the repository, without what the user's environment says about flags and profiles.
pub(crate) fn cargo(root: &Path, nightly: &Nightly) -> Command {
    let mut command = nightly.command("cargo");
    command.current_dir(root);
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_", "CARGO_UNSTABLE_"].iter().any(|p| name.starts_with(p))
            || matches!(&*name, "CARGO" | "CARGO_INCREMENTAL" | "CARGO_ENCODED_RUSTFLAGS")
        {
            command.env_remove(&*name);
        }
    }
    command
}

/// Flags that put fixed names in the place of this machine's paths. Of several that match, rustc takes the last.
fn remapped_paths(root: &Path, nightly: &Nightly) -> Result<Vec<String>> {
    let mut paths = vec![(root.to_owned(), "/lastsyn")];
    // Each registry has a directory named by a hash of its address, which differs where a mirror stands in.
    let registries = workspace::cargo_home()?.join("registry/src");
    if registries.is_dir() {
        for entry in fs::read_dir(&registries).with_context(|| format!("cannot list {}", registries.display()))? {
            paths.push((entry?.path(), "/registry"));
        }
    }
    paths.push((nightly.library_sources(), "/library"));
    Ok(paths.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect())
}
