//! What runs at the TCX ingress of a host's interface, as the kernel tells it, and programs of others there.

use std::{collections::BTreeMap, fs, process::Command};

use anyhow::{Context, Result, bail, ensure};
use aya::{
    Ebpf, EbpfLoader,
    programs::{LinkOrder, Program, SchedClassifier, TcAttachType, tc::TcAttachOptions},
};

use crate::{Host, programs};

/// The kernel's programs as they are built into the agent.
pub const OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ebpf/object/lastsyn.bpf.o"));

/// The ids of the programs on an interface, in the order in which they run.
///
/// # Errors
///
/// When the host has no such interface, or the kernel no TCX.
pub fn programs_on(host: &Host, interface: &str) -> Result<Vec<u32>> {
    let (_revision, programs) = host
        .run(|| SchedClassifier::query_tcx(interface, TcAttachType::Ingress))
        .with_context(|| format!("the programs on {interface} of {}", host.role()))?;
    Ok(programs.iter().map(aya::programs::ProgramInfo::id).collect())
}

/// How many instructions of the first program on an interface the kernel's verifier had to follow; it gives up at a
/// million.
///
/// # Errors
///
/// When there is no program, or the kernel does not say (before Linux 5.16).
pub fn verified_instructions(host: &Host, interface: &str) -> Result<u32> {
    let (_revision, programs) = host.run(|| SchedClassifier::query_tcx(interface, TcAttachType::Ingress))?;
    let first = programs.first().with_context(|| format!("no program on {interface} of {}", host.role()))?;
    first.verified_instruction_count().context("the kernel does not say what its verifier had to follow")
}

/// Loads every program of the object that the agent embeds, as the agent does.
///
/// # Errors
///
/// When the kernel refuses one.
pub fn load_all() -> Result<Ebpf> {
    let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT)?;
    for (name, program) in ebpf.programs_mut() {
        match program {
            Program::SchedClassifier(program) => program.load(),
            Program::CgroupSkb(program) => program.load(),
            _ => bail!("{name} is of a type that the agent does not load"),
        }
        .with_context(|| format!("the kernel does not take {name}"))?;
    }
    Ok(ebpf)
}

/// How many instructions of each program the kernel's verifier had to follow.
///
/// # Errors
///
/// When the kernel does not say (before Linux 5.16).
pub fn verified(ebpf: &Ebpf) -> Result<BTreeMap<String, u32>> {
    let count = |(name, program): (&str, &Program)| {
        let followed = program.info()?.verified_instruction_count();
        Ok((name.to_owned(), followed.context("the kernel does not say what its verifier had to follow")?))
    };
    ebpf.programs().map(count).collect()
}

/// The version of the running kernel as its authors number it, without what a distribution adds: the verifier is theirs.
///
/// # Errors
///
/// When the kernel does not say.
pub fn kernel_version() -> Result<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("no kernel release")?;
    Ok(release.trim().split('-').next().unwrap_or_default().to_owned())
}

/// Takes a program off every interface that it is on, as its owner's enemy would: the owner is not asked.
///
/// # Errors
///
/// When the program is on none, or `bpftool` fails.
pub fn detach(program: u32) -> Result<()> {
    let bpftool = |arguments: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(programs::find("bpftool")?).args(arguments).output()?;
        ensure!(
            output.status.success(),
            "bpftool {arguments:?} failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    };
    let links: Vec<serde_json::Value> = serde_json::from_slice(&bpftool(&["--json", "link", "list"])?)?;
    let mut detached = 0;
    for link in links.iter().filter(|link| link.get("prog_id") == Some(&program.into())) {
        let id = link.get("id").context("a link without an id")?.to_string();
        bpftool(&["link", "detach", "id", &id])?;
        detached += 1;
    }
    if detached == 0 {
        bail!("program {program} is on no interface");
    }
    Ok(())
}

/// Another agent's program on an interface: it lets every packet pass on to the next one. Gone when dropped.
#[derive(Debug)]
pub struct Stranger {
    _ebpf: Ebpf,
    program: u32,
}

// === impl Stranger ===

impl Stranger {
    /// Puts it on an interface of a host, before all that are there.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn attach_first(host: &Host, interface: &str) -> Result<Self> {
        let mut ebpf = EbpfLoader::new().load(OBJECT)?;
        let program: &mut SchedClassifier = ebpf.program_mut("ingress").context("no such program")?.try_into()?;
        program.load()?;
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        host.run(|| program.attach_with_options(interface, TcAttachType::Ingress, options))?;
        let id = program.info()?.id();
        Ok(Self { _ebpf: ebpf, program: id })
    }

    /// The program's id.
    pub fn program(&self) -> u32 {
        self.program
    }
}
