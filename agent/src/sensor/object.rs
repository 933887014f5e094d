//! The kernel programs: the object that is built into the agent, brought into the kernel.

use std::io;

use aya::{
    Ebpf, EbpfError, EbpfLoader, include_bytes_aligned,
    maps::{Array, LpmTrie, MapData, MapError, PerCpuArray},
    programs::{ProgramError, SchedClassifier},
};
use lastsyn_common::counters::{PortPage, Tally, Witness};

use super::{
    capabilities::{MissingCapabilities, missing_capabilities},
    self_test::{self, SelfTestError},
};

/// Built by `cargo xtask build-ebpf` and committed, so that building the agent needs no eBPF toolchain.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ebpf/object/lastsyn.bpf.o"));

/// Counts SYNs on an interface.
pub(super) const INGRESS: &str = "ingress";
/// Counts for the witness on the loopback.
pub(super) const LOOPBACK: &str = "loopback";

/// The programs and maps, in the kernel.
pub struct Loaded {
    pub(super) ebpf: Ebpf,
    pub(super) ports: Array<MapData, PortPage>,
    pub(super) counters: PerCpuArray<MapData, Tally>,
    pub(super) witness: PerCpuArray<MapData, Witness>,
    pub(super) ignored_v4: LpmTrie<MapData, u32, u8>,
    pub(super) ignored_v6: LpmTrie<MapData, [u32; 4], u8>,
}

/// Why the programs are not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The container may not load programs.
    #[error("{0}")]
    Capabilities(MissingCapabilities),
    /// The kernel refuses: too old, locked down, or without the `bpf` system call.
    #[error(
        "the kernel did not take the maps or programs ({detail}); it needs Linux 5.8 or newer with CONFIG_BPF_SYSCALL"
    )]
    Refused {
        /// The kernel's word.
        detail: String,
    },
    /// The verifier refuses the program.
    #[error(
        "the kernel's verifier refused the program {program}: {reason}; please report this with the kernel's version. Its last words: {log}"
    )]
    Verifier {
        /// Which.
        program: &'static str,
        /// The error number's text.
        reason: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// The object lacks something: the agent was not built right.
    #[error("{name} of the built-in kernel object cannot be used ({detail}); rebuild it with `cargo xtask build-ebpf`")]
    Object {
        /// The map or program.
        name: &'static str,
        /// What is wrong with it.
        detail: String,
    },
}

impl Loaded {
    /// Loads maps and programs. Nothing is attached yet.
    ///
    /// # Errors
    ///
    /// With the reason, and what the operator can do about it.
    pub fn load() -> Result<Self, LoadError> {
        if let Some(missing) = missing_capabilities() {
            return Err(LoadError::Capabilities(missing));
        }
        // The kernel's own BTF is not asked for: the programs touch nothing that moves between kernels.
        let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT).map_err(|error| refused(&error))?;
        for name in [INGRESS, LOOPBACK] {
            let program = classifier(&mut ebpf, name)?;
            program.load().map_err(|error| match error {
                ProgramError::LoadError { io_error, verifier_log } => {
                    LoadError::Verifier { program: name, reason: io_error, log: last_lines(&verifier_log.to_string()) }
                }
                other => LoadError::Refused { detail: other.to_string() },
            })?;
        }
        Ok(Self {
            ports: map(&mut ebpf, "PORTS", Array::try_from)?,
            counters: map(&mut ebpf, "COUNTERS", PerCpuArray::try_from)?,
            witness: map(&mut ebpf, "WITNESS", PerCpuArray::try_from)?,
            ignored_v4: map(&mut ebpf, "IGNORED_V4", LpmTrie::try_from)?,
            ignored_v6: map(&mut ebpf, "IGNORED_V6", LpmTrie::try_from)?,
            ebpf,
        })
    }
}

impl Loaded {
    /// Runs the counting program on a test packet, and looks whether it counted it by the agent's own clock.
    ///
    /// # Errors
    ///
    /// If it did not.
    pub fn self_test(&mut self) -> Result<(), SelfTestError> {
        self_test::prepare(self)?;
        self_test::run(self)
    }
}

/// A program of the object by its name.
pub(super) fn classifier<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SchedClassifier, LoadError> {
    let program = ebpf.program_mut(name).ok_or_else(|| absent(name))?;
    program.try_into().map_err(|source: ProgramError| LoadError::Object { name, detail: source.to_string() })
}

fn map<T>(
    ebpf: &mut Ebpf,
    name: &'static str,
    open: impl FnOnce(aya::maps::Map) -> Result<T, MapError>,
) -> Result<T, LoadError> {
    let map = ebpf.take_map(name).ok_or_else(|| absent(name))?;
    open(map).map_err(|source: MapError| LoadError::Object { name, detail: source.to_string() })
}

fn absent(name: &'static str) -> LoadError {
    LoadError::Object { name, detail: "it is not there".to_owned() }
}

/// Everything that the kernel said, outermost first.
fn refused(error: &EbpfError) -> LoadError {
    let mut detail = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !detail.contains(&cause_text) {
            detail = format!("{detail}: {cause_text}");
        }
        source = cause.source();
    }
    LoadError::Refused { detail }
}

/// The end of a log, where the verifier says what it is about.
fn last_lines(log: &str) -> String {
    // The very last lines are statistics.
    let statistics = ["verification time", "stack depth", "processed"];
    let telling = log.lines().rev().filter(|line| !statistics.iter().any(|start| line.starts_with(start)));
    let lines: Vec<String> = telling.take(2).map(|line| line.chars().take(120).collect()).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
