//! The compiled kernel programs that plain `cargo build` embeds, and the manifest that ties them to their sources.

pub(crate) mod compile;
pub(crate) mod dependencies;
pub(crate) mod digest;
pub(crate) mod manifest;
pub(crate) mod sections;
pub(crate) mod sources;

use std::path::{Path, PathBuf};

use anyhow::Result;

/// The package of the kernel programs.
pub(crate) const PACKAGE: &str = "lastsyn-probe";

/// The target they are compiled for. Every machine that the agent runs on is little-endian.
pub(crate) const TARGET: &str = "bpfel-unknown-none";

/// The object's name in [`directory`].
pub(crate) const FILE: &str = "lastsyn.bpf.o";

/// Where the object and its manifest are kept.
pub(crate) fn directory(root: &Path) -> PathBuf {
    root.join("ebpf/object")
}

/// What the object is made from, as the working tree has it now.
pub(crate) fn inputs(root: &Path) -> Result<manifest::Inputs> {
    Ok(manifest::Inputs {
        sources: sources::digest(root, &compile::recipe())?,
        dependencies: dependencies::digest(root)?,
    })
}
