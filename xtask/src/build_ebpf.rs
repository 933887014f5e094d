//! `cargo xtask build-ebpf`: compiles the kernel programs and commits the result to `ebpf/object`.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    object::{self, compile, digest, manifest::Manifest, manifest::Object},
    setup,
};

pub(crate) fn run(root: &Path) -> Result<()> {
    let toolchain = setup::kernel_toolchain()?;
    let inputs = object::inputs(root)?;
    let built = compile::compile(root, &toolchain.nightly, &toolchain.bpf_linker)?;
    let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    let manifest =
        Manifest { object: Object { sha256: digest::of_bytes(&bytes) }, inputs, tools: toolchain.versions() };
    manifest.write(root, &bytes)?;
    eprintln!(
        "Built {} ({} bytes, sha256 {})",
        object::directory(root).join(object::FILE).display(),
        bytes.len(),
        manifest.object.sha256
    );
    Ok(())
}
