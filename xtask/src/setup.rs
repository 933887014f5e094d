//! `cargo xtask setup`: gets every tool that is missing.

pub(crate) mod apt;
mod apt_sources;
mod bpf_linker;
mod cache;
pub(crate) mod cargo_program;
mod container_runtime;
mod debian_files;
mod envoy;
mod haproxy;
mod helm;
mod kubernetes;
mod nginx;
mod prometheus;
mod rust_src;
mod system_packages;
mod wheel;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
pub(crate) use system_packages::Purpose;

use crate::{nightly::Nightly, object::manifest::Tools};

/// What to get. Without a choice, everything.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line, and any may be given together")]
pub(crate) struct Choice {
    /// Only what the demonstration runs: HAProxy and the network tools
    #[arg(long)]
    demo: bool,
    /// What CI needs: the programs of the tests, and the kernel programs' toolchain
    #[arg(long)]
    test: bool,
    /// Only the toolchain that compiles the kernel programs
    #[arg(long)]
    ebpf: bool,
    /// Only what the lab's Kubernetes runs: etcd, the Kubernetes commands, and the network tools
    #[arg(long)]
    kubernetes: bool,
}

/// What compiles the kernel programs.
pub(crate) struct KernelToolchain {
    pub(crate) nightly: Nightly,
    pub(crate) bpf_linker: PathBuf,
    rust_src: String,
}

pub(crate) fn run(choice: &Choice) -> Result<()> {
    let everything = !(choice.demo || choice.test || choice.ebpf || choice.kubernetes);
    if everything {
        programs(Purpose::Debugging)?;
    } else if choice.test || choice.kubernetes {
        programs(Purpose::Test)?;
    } else if choice.demo {
        programs(Purpose::Demo)?;
    }
    if everything || choice.test || choice.ebpf {
        let toolchain = kernel_toolchain()?;
        eprintln!(
            "Kernel programs: rustc {}, core from {}, bpf-linker {}",
            toolchain.nightly.version().full,
            toolchain.rust_src,
            bpf_linker::VERSION
        );
    }
    if everything || choice.test || choice.kubernetes {
        for directory in [kubernetes::ensure()?, container_runtime::ensure()?] {
            eprintln!("Kubernetes: {}", directory.display());
        }
    }
    Ok(())
}

/// Gets what the lab's Kubernetes runs.
pub(crate) fn kubernetes() -> Result<()> {
    kubernetes::ensure()?;
    container_runtime::ensure().map(drop)
}

/// Gets the programs that `purpose` needs: the system's, and the servers that are kept apart from it.
pub(crate) fn programs(purpose: Purpose) -> Result<()> {
    system_packages::ensure(purpose)?;
    if purpose >= Purpose::Test {
        envoy::ensure()?;
        haproxy::ensure()?;
        helm::ensure()?;
        nginx::ensure()?;
        prometheus::ensure()?;
    }
    Ok(())
}

/// Gets what reads and unpacks images, and nothing else that tests need.
pub(crate) fn image_tools() -> Result<()> {
    system_packages::ensure_programs(&["skopeo", "umoci"])
}

/// Gets what is missing to compile the kernel programs.
pub(crate) fn kernel_toolchain() -> Result<KernelToolchain> {
    let nightly = Nightly::find()?;
    let rust_src = rust_src::ensure(&nightly)?;
    let bpf_linker = bpf_linker::ensure(&nightly)?;
    Ok(KernelToolchain { nightly, bpf_linker, rust_src })
}

/// What compiles the kernel programs, if it is on the machine already.
pub(crate) fn installed_kernel_toolchain() -> Result<KernelToolchain> {
    let nightly = Nightly::find()?;
    let rust_src = rust_src::installed(&nightly)
        .with_context(|| format!("the toolchain `{}` has no sources of the standard library", nightly.name()))?;
    let bpf_linker = bpf_linker::installed(&nightly)?.with_context(|| {
        format!("bpf-linker {} is not built for the toolchain `{}`", bpf_linker::VERSION, nightly.name())
    })?;
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
