//! `cargo xtask setup`: gets every tool that is missing.

pub(crate) mod bpf_linker;
pub(crate) mod cache;
pub(crate) mod rust_src;

use std::path::PathBuf;

use anyhow::Result;

use crate::{nightly::Nightly, object::manifest::Tools};

/// What compiles the kernel programs.
pub(crate) struct KernelToolchain {
    pub(crate) nightly: Nightly,
    pub(crate) bpf_linker: PathBuf,
    rust_src: String,
}

/// Gets what is missing to compile the kernel programs.
pub(crate) fn kernel_toolchain() -> Result<KernelToolchain> {
    let nightly = Nightly::find()?;
    let rust_src = rust_src::ensure(&nightly)?;
    let bpf_linker = bpf_linker::ensure(&nightly)?;
    Ok(KernelToolchain { nightly, bpf_linker, rust_src })
}

// === impl KernelToolchain ===

impl KernelToolchain {
    /// The versions that decide, beside the sources, what the object is.
    pub(crate) fn versions(&self) -> Tools {
        let version = self.nightly.version();
        Tools {
            rustc: version.full.clone(),
            rust_src: self.rust_src.clone(),
            bpf_linker: bpf_linker::VERSION.to_owned(),
            llvm: version.llvm.clone(),
        }
    }
}
