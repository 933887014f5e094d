//! What a packet costs in each of the kernel programs: the kernel's test run, each against an empty program of the same
//! type in the same process. Only the ratios mean anything elsewhere.

use std::{
    collections::BTreeMap,
    fs,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use anyhow::{Context, Result};
use aya::{Ebpf, maps::Array, programs::Program};
use lastsyn_common::counters::{FIRST_PORT_SLOT, PORTS_PER_PAGE, PortPage, port_index};
use serde_json::json;

use super::figures::Figures;
use crate::{
    Host, Lab,
    bpf::{self, Kind},
    prove::results,
    raw::{ExtensionHeader, Segment},
    tcx::{kernel_version, load_all, verified},
};

/// Runs in one go, in one call of the kernel.
const REPEAT: u32 = 2_000_000;
const ROUNDS: usize = 5;
/// Something listens there and the program watches it.
const WATCHED: u16 = 8080;
/// Neither.
const UNWATCHED: u16 = 9000;
/// For comparison: the least that it costs to know a SYN's socket, and the time.
const LOOKUP: &str = "bpf_skc_lookup_tcp";
const CLOCK: &str = "bpf_ktime_get_ns";
/// Bytes of data in a segment of data.
const PAYLOAD: usize = 1000;

/// A kind of packet at one of the programs.
struct Shape {
    program: &'static str,
    what: &'static str,
    frame: Vec<u8>,
    /// Whether the agent drains and keeps sources.
    draining: bool,
    /// How many times an empty program's time it may take at most, as the design has it.
    most: Option<f64>,
}

/// The programs and what they are compared with.
struct Bench {
    ebpf: Ebpf,
    empty: [OwnedFd; 2],
    /// What no program can do without that asks the kernel for a SYN's socket, and for the time.
    lookup: OwnedFd,
    clock: OwnedFd,
    sources_wanted: Array<aya::maps::MapData, u64>,
    _listener: TcpListener,
}

pub(super) fn measure() -> Result<()> {
    let lab = Lab::new()?;
    let pod = lab.host("pod")?;
    let mut bench = Bench::load(&pod)?;
    let shapes = shapes();
    let mut best: Vec<[Duration; 2]> = vec![[Duration::MAX; 2]; shapes.len()];
    for _ in 0..ROUNDS {
        for (shape, [empty, ours]) in shapes.iter().zip(&mut best) {
            bench.sources_wanted.set(0, u64::from(shape.draining), 0)?;
            // One after the other, so that the machine is alike to both.
            *empty = (*empty).min(pod.run(|| took(bench.empty(shape.program), &shape.frame))?);
            *ours = (*ours).min(pod.run(|| took(bench.program(shape.program)?, &shape.frame))?);
        }
    }
    let mut figures = Figures::default();
    for (shape, [empty, ours]) in shapes.iter().zip(&best) {
        let ratio = ours.as_secs_f64() / empty.as_secs_f64();
        figures.add(format!("`{}`: {}", shape.program, shape.what), ratio, "times an empty program", shape.most);
    }
    let followed = verified(&bench.ebpf)?;
    record(&followed)?;
    for (program, instructions) in followed {
        figures.add(format!("`{program}`: instructions that the verifier followed"), f64::from(instructions), "", None);
    }
    let nanos: Vec<_> = shapes
        .iter()
        .zip(&best)
        .map(|(shape, times)| {
            let [empty, ours] = times.map(|time| time.as_secs_f64() * 1e9 / f64::from(REPEAT));
            json!({"program": shape.program, "what": shape.what, "emptyNanos": empty, "nanos": ours})
        })
        .collect();
    figures.publish("packet-cost", &json!({ "repeat": REPEAT, "bestOf": ROUNDS, "times": nanos }))
}

/// Records what the verifier of this kernel's version followed, for `tests/instructions.rs` to compare.
fn record(followed: &BTreeMap<String, u32>) -> Result<()> {
    let path = results().join("verified-instructions.json");
    let mut recorded: BTreeMap<String, BTreeMap<String, u32>> = match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} cannot be read", path.display()))?,
        Err(_none) => BTreeMap::new(),
    };
    recorded.insert(kernel_version()?, followed.clone());
    let text = format!("{:#}\n", serde_json::to_value(&recorded)?);
    fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

// === impl Bench ===

impl Bench {
    fn load(pod: &Host) -> Result<Self> {
        let mut ebpf = load_all()?;
        let mut ports: Array<_, PortPage> = ebpf.take_map("PORTS").context("no map PORTS")?.try_into()?;
        let (page, place) = port_index(WATCHED);
        let mut slots = [0; PORTS_PER_PAGE];
        *slots.get_mut(place).context("a place in the page")? = FIRST_PORT_SLOT;
        ports.set(page, PortPage { slots }, 0)?;
        Ok(Self {
            sources_wanted: ebpf.take_map("SOURCES_WANTED").context("no map SOURCES_WANTED")?.try_into()?,
            ebpf,
            lookup: bpf::lookup([
                u32::from_ne_bytes([192, 0, 2, 1]),
                u32::from_ne_bytes([127, 0, 0, 1]),
                u32::from(40_000_u16.to_be()) | u32::from(WATCHED.to_be()) << 16,
            ])?,
            clock: bpf::clock()?,
            empty: [bpf::empty(Kind::Classifier)?, bpf::empty(Kind::Group)?],
            _listener: pod.run(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, WATCHED)))?,
        })
    }

    fn empty(&self, program: &str) -> BorrowedFd<'_> {
        let [classifier, group] = &self.empty;
        if program == "cgroup" { group.as_fd() } else { classifier.as_fd() }
    }

    fn program(&self, name: &str) -> Result<BorrowedFd<'_>> {
        match name {
            LOOKUP => return Ok(self.lookup.as_fd()),
            CLOCK => return Ok(self.clock.as_fd()),
            _ => {}
        }
        let program = self.ebpf.program(name).with_context(|| format!("no program {name}"))?;
        let loaded = match program {
            Program::SchedClassifier(program) => program.fd(),
            Program::CgroupSkb(program) => program.fd(),
            _ => anyhow::bail!("{name} is of a type that nothing here is compared with"),
        };
        Ok(loaded?.as_fd())
    }
}

/// How much of the processor it takes; what else runs on the machine is not in it.
fn took(program: BorrowedFd<'_>, frame: &[u8]) -> Result<Duration> {
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let before = now();
    bpf::test_run(program, frame, REPEAT).context("no test run")?;
    Ok(Duration::try_from(now() - before)?)
}

fn shapes() -> Vec<Shape> {
    let source = |v6| {
        if v6 {
            SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 40_000))
        } else {
            SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 40_000))
        }
    };
    let target = |v6, port| {
        if v6 { SocketAddr::from((Ipv6Addr::LOCALHOST, port)) } else { SocketAddr::from((Ipv4Addr::LOCALHOST, port)) }
    };
    let syn = |v6, port| Segment::syn(source(v6), target(v6, port));
    let data = |v6| Segment::data(source(v6), target(v6, WATCHED), &[7; PAYLOAD]);
    // Hop-by-hop and destination options.
    let behind = |segment: Segment| Segment {
        extension_headers: [0, 60].map(|kind| ExtensionHeader { kind, body: vec![1; 6] }).to_vec(),
        ..segment
    };
    let shape = |program, what, segment: Segment, most| {
        let frame = segment.to_frame();
        Shape { program, what, frame, draining: false, most }
    };
    let draining = |shape: Shape| Shape { draining: true, ..shape };
    let ingress = |what, segment, most| shape("ingress", what, segment, most);
    vec![
        ingress("data over IPv4", data(false), Some(1.15)),
        ingress("data over IPv6", data(true), Some(1.15)),
        ingress("SYN to a port that is not watched, IPv4", syn(false, UNWATCHED), Some(1.3)),
        ingress("SYN to a port that is not watched, IPv6", syn(true, UNWATCHED), Some(1.3)),
        ingress("SYN to a watched port, at rest, IPv4", syn(false, WATCHED), Some(3.5)),
        ingress("SYN to a watched port, at rest, IPv6", syn(true, WATCHED), Some(3.5)),
        draining(ingress(
            "SYN to a watched port, in a drain that keeps sources, IPv4",
            syn(false, WATCHED),
            Some(12.0),
        )),
        draining(ingress("SYN to a watched port, in a drain that keeps sources, IPv6", syn(true, WATCHED), Some(12.0))),
        ingress("data behind two IPv6 extension headers", behind(data(true)), Some(4.0)),
        ingress("SYN to a port that is not watched, behind two", behind(syn(true, UNWATCHED)), Some(4.0)),
        ingress("SYN to a watched port, at rest, behind two", behind(syn(true, WATCHED)), None),
        shape(LOOKUP, "a program of this alone, at the watched port, IPv4", syn(false, WATCHED), None),
        shape(CLOCK, "a program of this alone", syn(false, WATCHED), None),
        shape("loopback", "data over IPv4", data(false), Some(1.15)),
        shape("loopback", "SYN over IPv4", syn(false, WATCHED), None),
        shape("cgroup", "data over IPv4", data(false), Some(1.15)),
    ]
}
