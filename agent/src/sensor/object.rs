//! The kernel programs: the object that is built into the agent, brought into the kernel.

use std::io;

use aya::{
    Ebpf, EbpfError, EbpfLoader, include_bytes_aligned,
    maps::{Array, HashMap, LpmTrie, MapData, MapError, PerCpuArray, PerCpuHashMap},
    programs::{CgroupSkb, Program, ProgramError, SchedClassifier},
};
use lastsyn_common::{
    counters::{Mark, PortPage, Prober, Sender, Tally, Witness},
    packet::{Ipv4, Ipv6},
    sources::{Knocks, Source},
};

use super::{
    capabilities::{Capability, MissingCapabilities, in_user_namespace, missing},
    self_test::{self, SelfTestError},
};

/// Built by `cargo xtask build-ebpf` and committed, so that building the agent needs no eBPF toolchain.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("CARGO_MANIFEST_DIR"), "/../ebpf/object/lastsyn.bpf.o"));

/// Counts SYNs on an interface.
pub(super) const INGRESS: &str = "ingress";
/// Counts for the witness on the loopback.
pub(super) const LOOPBACK: &str = "loopback";
/// Counts SYNs that meet a socket of a control group.
pub(super) const CGROUP: &str = "cgroup";

/// Which of the programs are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Those that run on interfaces.
    OnInterfaces,
    /// The one that runs on a control group.
    OnGroup,
}

/// The programs and maps, in the kernel.
pub(super) struct Loaded {
    pub(super) ebpf: Ebpf,
    pub(super) ports: Array<MapData, PortPage>,
    pub(super) ports_udp: Array<MapData, PortPage>,
    pub(super) counters: PerCpuArray<MapData, Tally>,
    pub(super) witness: PerCpuArray<MapData, Witness>,
    pub(super) ignored_v4: LpmTrie<MapData, u32, u8>,
    pub(super) ignored_v6: LpmTrie<MapData, [u32; 4], u8>,
    pub(super) probers: HashMap<MapData, Prober, u8>,
    pub(super) mark_counts: PerCpuArray<MapData, u64>,
    pub(super) marks: PerCpuArray<MapData, Mark>,
    pub(super) askers_v4: HashMap<MapData, Ipv4, Sender>,
    pub(super) askers_v6: HashMap<MapData, Ipv6, Sender>,
    pub(super) sources_wanted: Array<MapData, u64>,
    pub(super) sources: PerCpuHashMap<MapData, Source, Knocks>,
    pub(super) sources_added: PerCpuArray<MapData, u64>,
    pub(super) whole: HashMap<MapData, [u32; 4], u8>,
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
    /// The pod has a user namespace of its own.
    #[error(
        "the pod has a user namespace of its own (hostUsers: false), in which the kernel takes no programs ({detail})"
    )]
    UserNamespace {
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
    pub(super) fn load(wanted: Wanted) -> Result<Self, LoadError> {
        if let Some(lacking) = missing(&Capability::FOR_PROGRAMS) {
            return Err(LoadError::Capabilities(lacking));
        }
        // The kernel's own BTF is not asked for: the programs touch nothing that moves between kernels.
        let mut ebpf = EbpfLoader::new().btf(None).load(OBJECT).map_err(|error| refused(&error))?;
        match wanted {
            Wanted::OnInterfaces => {
                for name in [INGRESS, LOOPBACK] {
                    classifier(&mut ebpf, name)?.load().map_err(|error| not_loaded(name, error))?;
                }
            }
            Wanted::OnGroup => {
                let group: &mut CgroupSkb = program(&mut ebpf, CGROUP)?;
                group.load().map_err(|error| not_loaded(CGROUP, error))?;
            }
        }
        Ok(Self {
            ports: map(&mut ebpf, "PORTS", Array::try_from)?,
            ports_udp: map(&mut ebpf, "PORTS_UDP", Array::try_from)?,
            counters: map(&mut ebpf, "COUNTERS", PerCpuArray::try_from)?,
            witness: map(&mut ebpf, "WITNESS", PerCpuArray::try_from)?,
            ignored_v4: map(&mut ebpf, "IGNORED_V4", LpmTrie::try_from)?,
            ignored_v6: map(&mut ebpf, "IGNORED_V6", LpmTrie::try_from)?,
            probers: map(&mut ebpf, "PROBERS", HashMap::try_from)?,
            mark_counts: map(&mut ebpf, "MARK_COUNTS", PerCpuArray::try_from)?,
            marks: map(&mut ebpf, "MARKS", PerCpuArray::try_from)?,
            askers_v4: map(&mut ebpf, "ASKERS_V4", HashMap::try_from)?,
            askers_v6: map(&mut ebpf, "ASKERS_V6", HashMap::try_from)?,
            sources_wanted: map(&mut ebpf, "SOURCES_WANTED", Array::try_from)?,
            sources: map(&mut ebpf, "SOURCES", PerCpuHashMap::try_from)?,
            sources_added: map(&mut ebpf, "SOURCES_ADDED", PerCpuArray::try_from)?,
            whole: map(&mut ebpf, "WHOLE", HashMap::try_from)?,
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
    pub(super) fn self_test(&mut self) -> Result<(), SelfTestError> {
        self_test::prepare(self)?;
        self_test::run(self)
    }
}

/// A program of the object by its name.
pub(super) fn classifier<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SchedClassifier, LoadError> {
    program(ebpf, name)
}

/// The same, of any type.
pub(super) fn program<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, LoadError>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
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

fn not_loaded(program: &'static str, error: ProgramError) -> LoadError {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            LoadError::Verifier { program, reason: io_error, log: last_lines(&verifier_log.to_string()) }
        }
        other => LoadError::Refused { detail: other.to_string() },
    }
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
    if in_user_namespace() { LoadError::UserNamespace { detail } } else { LoadError::Refused { detail } }
}

/// The end of a log, where the verifier says what it is about.
fn last_lines(log: &str) -> String {
    // The very last lines are statistics.
    let statistics = ["verification time", "stack depth", "processed"];
    let telling = log.lines().rev().filter(|line| !statistics.iter().any(|start| line.starts_with(start)));
    let lines: Vec<String> = telling.take(2).map(|line| line.chars().take(120).collect()).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
