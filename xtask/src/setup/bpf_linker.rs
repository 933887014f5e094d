//! `bpf-linker`, built against the LLVM of the nightly toolchain, so that both speak the same bitcode.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::cache;
use crate::{nightly::Nightly, process, workspace};

/// Another version may lay the object out in another way: a change here goes with a new object.
pub(crate) const VERSION: &str = "0.13.0";

/// The linker's path, after it has been built where it was not there or was built for another nightly.
pub(crate) fn ensure(nightly: &Nightly) -> Result<PathBuf> {
    if let Some(program) = installed(nightly)? {
        return Ok(program);
    }
    let _lock = cache::lock()?;
    // Another run may have built it while this one waited.
    if let Some(program) = installed(nightly)? {
        return Ok(program);
    }
    let version = nightly.version();
    eprintln!("Building bpf-linker {VERSION} against LLVM {} of {} (about a minute)", version.llvm, version.full);
    let directory = directory()?;
    cache::replace(&directory, &stamp(nightly), |content| build(nightly, content))?;
    Ok(program(&directory))
}

/// The linker's path; `None` where it is not there or was built for another nightly.
pub(crate) fn installed(nightly: &Nightly) -> Result<Option<PathBuf>> {
    let directory = directory()?;
    let program = program(&directory);
    Ok((cache::stamp(&directory) == Some(stamp(nightly)) && program.is_file()).then_some(program))
}

fn directory() -> Result<PathBuf> {
    Ok(cache::directory()?.join(format!("bpf-linker-{VERSION}")))
}

fn program(directory: &Path) -> PathBuf {
    directory.join("bin/bpf-linker")
}

fn stamp(nightly: &Nightly) -> String {
    format!("bpf-linker {VERSION} for rustc {} LLVM {}\n", nightly.version().commit, nightly.version().llvm)
}

fn build(nightly: &Nightly, destination: &Path) -> Result<()> {
    // The build looks for `libLLVM.so` in a directory called `lib`.
    let prefix = destination.join("llvm");
    let library = shared_llvm(&nightly.sysroot().join("lib"))?;
    fs::create_dir_all(prefix.join("lib")).with_context(|| format!("cannot make {}", prefix.display()))?;
    std::os::unix::fs::symlink(&library, prefix.join("lib/libLLVM.so"))
        .with_context(|| format!("cannot link to {}", library.display()))?;

    let target = destination.join("target");
    let mut install = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    install
        .args([
            "install",
            "--quiet",
            "bpf-linker",
            "--version",
            VERSION,
            "--locked",
            "--no-default-features",
            "--features",
        ])
        .arg(format!("llvm-{}", nightly.version().llvm_major()))
        .arg("--root")
        .arg(destination)
        .arg("--target-dir")
        .arg(&target)
        .env("LLVM_PREFIX", &prefix)
        // The home directory has no workspace and no configuration of this repository.
        .current_dir(workspace::home()?);
    process::run(&mut install)?;
    fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;

    let version = process::read(nightly.command(program(destination)).arg("--version"))
        .context("the new bpf-linker does not run")?;
    if version != format!("bpf-linker {VERSION}") {
        bail!("the new bpf-linker calls itself `{version}`, not {VERSION}");
    }
    Ok(())
}

/// The shared library itself. Its name carries LLVM's version; what is called `libLLVM-*.so` beside it is a linker
/// script, which the build does not take.
fn shared_llvm(directory: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let path = entry.with_context(|| format!("cannot list {}", directory.display()))?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libLLVM.so.")) {
            found.push(path);
        }
    }
    match found.as_slice() {
        [library] => Ok(library.clone()),
        _ => bail!(
            "{} libraries in {} are called libLLVM.so.*, and one is needed: install the toolchain again",
            found.len(),
            directory.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_told_from_the_linker_script() {
        let directory = tempfile::tempdir().unwrap();
        let error = shared_llvm(directory.path()).unwrap_err().to_string();
        assert!(error.contains("0 libraries"), "{error}");
        for name in ["libLLVM-22-rust-1.97.0-nightly.so", "libLLVM.so.22.1-rust-1.97.0-nightly", "librustc_driver.so"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let library = shared_llvm(directory.path()).unwrap();
        assert!(library.ends_with("libLLVM.so.22.1-rust-1.97.0-nightly"));
    }
}
