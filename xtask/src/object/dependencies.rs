//! A digest over the dependencies that are compiled into the kernel programs.
//!
//! `Cargo.lock` alone cannot tell them: it lists what any member of the workspace may need, build scripts and optional
//! dependencies included, so that an update for the agent alone would seem to change the object. Cargo resolves the
//! package for its target, and the lock gives the checksums.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::{PACKAGE, TARGET, digest::Parts};
use crate::{process, workspace};

/// A package as a lock file names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// Absent for a member of the workspace.
    source: Option<String>,
    /// Absent for a member of the workspace, and for a source that is not a registry.
    checksum: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

/// The digest in hexadecimal. Downloads the dependencies that are not on the machine yet.
pub(crate) fn digest(root: &Path) -> Result<String> {
    let tree = process::read(workspace::cargo(root).args([
        "tree",
        "--quiet",
        "--locked",
        "--package",
        PACKAGE,
        "--target",
        TARGET,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        "{p}",
    ]))
    .context("the dependencies of the kernel programs cannot be resolved")?;
    let path = root.join("Cargo.lock");
    let lock = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(digest_of(&locked(&tree, &lock)?))
}

/// The lock's entries for every package that `cargo tree` names.
fn locked(tree: &str, lock: &str) -> Result<BTreeSet<Locked>> {
    let lock: Lock = toml::from_str(lock).context("Cargo.lock is not a lock file that this tool knows")?;
    let mut found = BTreeSet::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (name, version) = words
            .next()
            .zip(words.next().and_then(|version| version.strip_prefix('v')))
            .with_context(|| format!("`cargo tree` printed what is not a package: {line}"))?;
        // Two sources may offer the same version, and a tree's line does not always tell which: both count then.
        let mut entries =
            lock.package.iter().filter(|package| package.name == name && package.version == version).peekable();
        if entries.peek().is_none() {
            bail!("{name} {version} is not in Cargo.lock");
        }
        found.extend(entries.cloned());
    }
    Ok(found)
}

fn digest_of(packages: &BTreeSet<Locked>) -> String {
    let mut parts = Parts::default();
    for Locked { name, version, source, checksum } in packages {
        // A registry's checksum says what is compiled; its address does not, and a git source carries its commit.
        let content = checksum.as_ref().or(source.as_ref()).map_or("", String::as_str);
        parts.add(&format!("{name} {version}"), content.as_bytes());
    }
    parts.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "lastsyn-probe v0.1.0 (/somewhere/ebpf/probe)\naya-ebpf v0.2.1\nsyn v2.0.1\nmacros v1.0.0 (proc-macro)\nsyn v2.0.1\n";

    fn lock(aya_ebpf: &str, tokio: &str) -> String {
        let entry = |name: &str, version: &str, checksum: &str| {
            format!(
                "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry\"\nchecksum = \"{checksum}\"\n"
            )
        };
        ["[[package]]\nname = \"lastsyn-probe\"\nversion = \"0.1.0\"\ndependencies = [\"aya-ebpf\"]\n".to_owned()]
            .into_iter()
            .chain([entry("aya-ebpf", "0.2.1", aya_ebpf), entry("syn", "1.0.0", "old"), entry("syn", "2.0.1", "new")])
            .chain([entry("macros", "1.0.0", "m"), entry("tokio", "1.0.0", tokio)])
            .collect()
    }

    #[test]
    fn the_tree_chooses_the_entries() {
        let packages = locked(TREE, &lock("a", "t")).unwrap();
        let names: Vec<_> = packages.iter().map(|package| format!("{} {}", package.name, package.version)).collect();
        assert_eq!(names, ["aya-ebpf 0.2.1", "lastsyn-probe 0.1.0", "macros 1.0.0", "syn 2.0.1"]);
    }

    #[test]
    fn only_the_programs_own_dependencies_count() {
        let digest = |lock: String| digest_of(&locked(TREE, &lock).unwrap());
        assert_ne!(digest(lock("a", "t")), digest(lock("b", "t")));
        assert_eq!(digest(lock("a", "t")), digest(lock("a", "u")));
    }

    #[test]
    fn a_package_that_is_not_locked_is_named() {
        let error = locked("new v1.0.0\n", &lock("a", "t")).unwrap_err().to_string();
        assert!(error.contains("new 1.0.0"), "{error}");
    }
}
