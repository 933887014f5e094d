//! `cargo xtask check-ebpf`: fails when the committed object is not what the sources say.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{
    object::{self, compile, digest, manifest::Manifest, sections},
    setup::{self, KernelToolchain},
};

const REMEDY: &str = "build the object again with `cargo xtask build-ebpf` and commit ebpf/object";

const TOOLS: &str = "`cargo xtask setup --ebpf` gets the tools for the installed nightly; LASTSYN_NIGHTLY names another \
                     toolchain, and `cargo xtask build-ebpf` makes the object anew with these";

/// How far a check goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rebuild {
    /// Rebuild where the toolchain is, and say so where it is not or is another one.
    WherePossible,
    /// A rebuild that cannot be made, or that another toolchain makes differently, is a failure.
    Required,
}

pub(crate) fn run(root: &Path, rebuild: Rebuild) -> Result<()> {
    let manifest = Manifest::read(root)?;
    let path = object::directory(root).join(object::FILE);
    let committed = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let sha256 = digest::of_bytes(&committed);
    if sha256 != manifest.object.sha256 {
        bail!(
            "{} is not the object of its manifest: its sha256 is {sha256}, and the manifest says {}; {REMEDY}",
            path.display(),
            manifest.object.sha256
        );
    }
    let changes = manifest.inputs.changes(&object::inputs(root)?);
    if !changes.is_empty() {
        bail!("since the object was built, these changed: {}; {REMEDY}", changes.join("; "));
    }
    eprintln!("The object belongs to the sources, by the digests of its manifest");

    let toolchain = match setup::installed_kernel_toolchain() {
        Ok(toolchain) => toolchain,
        Err(error) => return not_compared(rebuild, &format!("{error:#}")),
    };
    let tools = toolchain.versions();
    let differences = manifest.tools.differences(&tools).join("; ");
    // Another origin of `core` often has the same code in what the programs use, so that trying is worth it. Another
    // compiler or linker hardly ever gives the same bytes.
    if !manifest.tools.same_compiler(&tools) {
        return not_compared(rebuild, &differences);
    }
    match compile(root, &toolchain) {
        Ok(bytes) if bytes == committed => {
            eprintln!("A rebuild gives the same {} bytes", committed.len());
            Ok(())
        }
        _ if !differences.is_empty() => not_compared(rebuild, &differences),
        Ok(bytes) => {
            let differ = sections::that_differ(&committed, &bytes).join(", ");
            eprintln!("A rebuild gives other bytes, in {differ}; it is made once more, from nothing");
            compile::clean(root)?;
            if compile(root, &toolchain)? != committed {
                bail!(
                    "two rebuilds with the tools of the manifest give other bytes than {}, the first in {differ}; {REMEDY}",
                    path.display()
                );
            }
            // Seen once, on a machine that had no other fault: the sources are what the object was made of all the same.
            eprintln!("WARNING: the second rebuild gives the same bytes: the compiler does not always do the same");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn compile(root: &Path, toolchain: &KernelToolchain) -> Result<Vec<u8>> {
    let built = compile::compile(root, &toolchain.nightly, &toolchain.bpf_linker)?;
    fs::read(&built).with_context(|| format!("cannot read {}", built.display()))
}

fn not_compared(rebuild: Rebuild, why: &str) -> Result<()> {
    if rebuild == Rebuild::Required {
        bail!("the object could not be compared with a rebuild: {why}. {TOOLS}");
    }
    eprintln!("WARNING: the object was NOT compared with a rebuild: {why}. {TOOLS}");
    Ok(())
}
