//! The record beside the object of what it was made from.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{FILE, directory};

const HEADER: &str =
    "# Written by `cargo xtask build-ebpf` together with the object; `cargo xtask check-ebpf` holds both to it.\n\n";

/// What was recorded when the object was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Manifest {
    pub(crate) object: Object,
    pub(crate) inputs: Inputs,
    pub(crate) tools: Tools,
}

/// The object itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Object {
    pub(crate) sha256: String,
}

/// SHA-256 digests, in hexadecimal, over what the repository says the object is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Inputs {
    /// See [`super::sources::digest`].
    pub(crate) sources: String,
    /// See [`super::dependencies::digest`].
    pub(crate) dependencies: String,
}

/// The versions of the tools that made it. Other versions may give other bytes from the same sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Tools {
    /// Release, commit and date.
    pub(crate) rustc: String,
    /// Where the sources of `core` come from, and their version.
    pub(crate) rust_src: String,
    pub(crate) bpf_linker: String,
    pub(crate) llvm: String,
}

// === impl Manifest ===

impl Manifest {
    /// Reads the committed manifest.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let path = Self::path(root);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}: make it with `cargo xtask build-ebpf`", path.display()))?;
        toml::from_str(&text).with_context(|| {
            format!("{} cannot be understood: make it again with `cargo xtask build-ebpf`", path.display())
        })
    }

    /// Writes the object, then the manifest that vouches for it.
    pub(crate) fn write(&self, root: &Path, object: &[u8]) -> Result<()> {
        let directory = directory(root);
        fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let text = toml::to_string(self).context("the manifest cannot be written as TOML")?;
        for (path, content) in
            [(directory.join(FILE), object), (Self::path(root), format!("{HEADER}{text}").as_bytes())]
        {
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn path(root: &Path) -> PathBuf {
        directory(root).join("manifest.toml")
    }
}

// === impl Inputs ===

impl Inputs {
    /// What is no longer as `self` records it, in the words of a message. Empty when all is.
    pub(crate) fn changes(&self, now: &Self) -> Vec<&'static str> {
        let mut changes = Vec::new();
        if self.sources != now.sources {
            changes.push("the sources of the kernel programs, or the settings they are built with");
        }
        if self.dependencies != now.dependencies {
            changes.push("the dependencies of the kernel programs in Cargo.lock");
        }
        changes
    }
}

// === impl Tools ===

impl Tools {
    /// The tools whose versions differ, as `name: recorded, here`. Empty when all are the same.
    pub(crate) fn differences(&self, here: &Self) -> Vec<String> {
        [
            ("rustc", &self.rustc, &here.rustc),
            ("rust-src", &self.rust_src, &here.rust_src),
            ("bpf-linker", &self.bpf_linker, &here.bpf_linker),
            ("LLVM", &self.llvm, &here.llvm),
        ]
        .into_iter()
        .filter(|(_, recorded, here)| recorded != here)
        .map(|(name, recorded, here)| format!("{name}: made with {recorded}, here is {here}"))
        .collect()
    }

    /// Whether compiler and linker are the same, wherever the sources of `core` come from.
    pub(crate) fn same_compiler(&self, here: &Self) -> bool {
        Self { rust_src: here.rust_src.clone(), ..self.clone() } == *here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            object: Object { sha256: "0".repeat(64) },
            inputs: Inputs { sources: "1".repeat(64), dependencies: "2".repeat(64) },
            tools: Tools {
                rustc: "1.97.0-nightly (e50aa6fba 2026-05-19)".to_owned(),
                rust_src: "rustup".to_owned(),
                bpf_linker: "0.13.0".to_owned(),
                llvm: "22.1.4".to_owned(),
            },
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let root = tempfile::tempdir().unwrap();
        manifest().write(root.path(), b"object").unwrap();
        assert_eq!(Manifest::read(root.path()).unwrap(), manifest());
        assert_eq!(fs::read(root.path().join("ebpf/object/lastsyn.bpf.o")).unwrap(), b"object");
    }

    #[test]
    fn a_missing_manifest_says_how_to_make_it() {
        let root = tempfile::tempdir().unwrap();
        let error = Manifest::read(root.path()).unwrap_err().to_string();
        assert!(error.contains("manifest.toml") && error.contains("build-ebpf"), "{error}");
    }

    #[test]
    fn every_change_is_told_apart() {
        let recorded = manifest().inputs;
        assert!(recorded.changes(&recorded).is_empty());
        let sources = Inputs { sources: "3".repeat(64), ..recorded.clone() };
        assert!(recorded.changes(&sources).iter().all(|change| change.contains("sources")));
        assert_eq!(recorded.changes(&sources).len(), 1);
        let both = Inputs { dependencies: "4".repeat(64), ..sources };
        assert_eq!(recorded.changes(&both).len(), 2);
    }

    #[test]
    fn another_version_of_a_tool_is_named_with_both_versions() {
        let recorded = manifest().tools;
        assert!(recorded.differences(&recorded).is_empty());
        let here = Tools { bpf_linker: "0.14.0".to_owned(), ..recorded.clone() };
        assert_eq!(recorded.differences(&here), ["bpf-linker: made with 0.13.0, here is 0.14.0"]);
        assert!(!recorded.same_compiler(&here));
    }

    #[test]
    fn another_origin_of_core_leaves_the_compiler_the_same() {
        let recorded = manifest().tools;
        let here = Tools { rust_src: "Debian rust-src 1.97.1".to_owned(), ..recorded.clone() };
        assert_eq!(recorded.differences(&here).len(), 1);
        assert!(recorded.same_compiler(&here));
    }
}
