//! The sources of the standard library, from which `core` is built for the BPF target.
//!
//! They must fit the compiler. rustup has exactly the nightly's own; where its server cannot be reached, Debian's
//! development suites carry the sources of a release close to a nightly, and the machine's own mirror has them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::{
    apt::SeparateApt,
    apt_sources::{self, Source},
    cache,
};
use crate::{nightly::Nightly, process};

const PACKAGE: &str = "rust-src";

/// Debian's suites that carry a current compiler.
const SUITES: [&str; 2] = ["testing", "unstable"];

/// How long rustup may take, in seconds. A server that cannot be reached must not hold everything up.
const RUSTUP_SECONDS: &str = "60";

/// Where the sources come from, after they have been fetched where they were not there.
pub(crate) fn ensure(nightly: &Nightly) -> Result<String> {
    if let Some(origin) = installed(nightly) {
        return Ok(origin);
    }
    let _lock = cache::lock()?;
    // Another run may have fetched them while this one waited.
    if let Some(origin) = installed(nightly) {
        return Ok(origin);
    }
    if let Err(error) = from_rustup(nightly) {
        eprintln!("rustup cannot get {PACKAGE} ({error:#}): trying Debian's mirror");
        from_debian(nightly)?;
    }
    installed(nightly)
        .with_context(|| format!("{PACKAGE} was fetched, but {} is not complete", nightly.library_sources().display()))
}

/// Where the sources come from; `None` where they are not there, or are those of the nightly that was here before.
pub(crate) fn installed(nightly: &Nightly) -> Option<String> {
    let library = nightly.library_sources();
    if !library.join("core/src/lib.rs").is_file() {
        return None;
    }
    let components = fs::read_to_string(nightly.sysroot().join("lib/rustlib/components")).unwrap_or_default();
    if components.lines().any(|component| component == PACKAGE) {
        return Some("rustup".to_owned());
    }
    match cache::stamp(&library) {
        // rustup leaves what it does not know of in place when it updates the toolchain.
        Some(stamp) => stamp.strip_suffix(&stamp_end(nightly)).map(str::to_owned),
        None => Some("an unknown origin".to_owned()),
    }
}

fn stamp_end(nightly: &Nightly) -> String {
    format!(", for rustc {}\n", nightly.version().commit)
}

fn from_rustup(nightly: &Nightly) -> Result<()> {
    eprintln!("Getting {PACKAGE} for {} from rustup", nightly.name());
    process::run(
        Command::new("timeout")
            .arg(RUSTUP_SECONDS)
            .args(["rustup", "component", "add", PACKAGE, "--toolchain", nightly.name()])
            .env("RUST_BACKTRACE", "0"), // rustup would add where in its own code it failed
    )
}

fn from_debian(nightly: &Nightly) -> Result<()> {
    let mirrors = apt_sources::debian_mirrors()?;
    if mirrors.is_empty() {
        bail!(
            "this machine's apt sources name no Debian mirror: run `rustup component add {PACKAGE} --toolchain {}` where \
             rustup reaches its server",
            nightly.name()
        );
    }
    let mut failures = Vec::new();
    for mirror in mirrors {
        match from_mirror(nightly, &mirror) {
            Ok(()) => return Ok(()),
            Err(error) => failures.push(format!("{}: {error:#}", mirror.uri)),
        }
    }
    bail!("no mirror gave {PACKAGE}: {}", failures.join("; "))
}

fn from_mirror(nightly: &Nightly, mirror: &Source) -> Result<()> {
    eprintln!("Looking for {PACKAGE} in {} of {}", SUITES.join(" and "), mirror.uri);
    let apt = SeparateApt::new(&cache::directory()?, &mirror.stanza(&SUITES, "main"))?;
    let wanted = &nightly.version().full;
    let versions = apt.versions(PACKAGE)?;
    let version = closest(&versions, wanted).with_context(|| format!("it has no {PACKAGE}"))?;
    if minor(version) != minor(wanted) {
        eprintln!("WARNING: the closest {PACKAGE} is {version}, which may not build with rustc {wanted}");
    }
    eprintln!("Getting {PACKAGE} {version} for rustc {wanted}");
    let unpacked = apt.unpack(PACKAGE, version)?;
    let library = find_library(&unpacked.join("usr/src"))?;
    let stamp = format!("Debian {PACKAGE} {version}{}", stamp_end(nightly));
    cache::replace(&nightly.library_sources(), &stamp, |content| {
        process::run(Command::new("cp").arg("--archive").arg(library.join(".")).arg(content))
    })
}

fn find_library(directory: &Path) -> Result<PathBuf> {
    fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().join("library")))
        .find(|library| library.join("core/src/lib.rs").is_file())
        .with_context(|| format!("the package {PACKAGE} has no library/core where Debian puts it"))
}

/// The version of the same release as the compiler's, or else of the nearest.
fn closest<'versions>(versions: &'versions [String], compiler: &str) -> Option<&'versions str> {
    let wanted = minor(compiler)?;
    versions
        .iter()
        .map(String::as_str)
        .filter(|version| minor(version).is_some())
        .min_by_key(|version| minor(version).map_or(u32::MAX, |minor| minor.abs_diff(wanted)))
}

/// The second number of a version: Rust's releases differ in it.
fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_same_release_is_taken_or_the_nearest() {
        let versions = ["1.85.0+dfsg3-1", "1.97.1+dfsg1-1", "1.99.0+dfsg1-1", "rubbish"].map(str::to_owned);
        assert_eq!(closest(&versions, "1.97.0-nightly (e50aa6fba 2026-05-19)"), Some("1.97.1+dfsg1-1"));
        assert_eq!(closest(&versions, "1.100.0-nightly (e50aa6fba 2026-05-19)"), Some("1.99.0+dfsg1-1"));
        assert_eq!(closest(&[], "1.97.0-nightly"), None);
    }
}
