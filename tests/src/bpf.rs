//! Programs of a few instructions, for what other agents and network plugins do at the ingress of an interface. They are
//! written out here, so that the lab needs no compiler for them.

#![expect(unsafe_code, reason = "the system calls for it: no crate here loads a program without an object file")]

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use anyhow::{Context, Result};

use crate::Host;

/// `BPF_PROG_LOAD` in `linux/bpf.h`.
const PROGRAM_LOAD: libc::c_int = 5;
/// `BPF_LINK_CREATE` in `linux/bpf.h`.
const LINK_CREATE: libc::c_int = 28;
/// `BPF_PROG_TEST_RUN` in `linux/bpf.h`.
const PROGRAM_TEST_RUN: libc::c_int = 10;
/// `BPF_PROG_TYPE_SCHED_CLS` in `linux/bpf.h`.
const CLASSIFIER: u32 = 3;
/// `BPF_PROG_TYPE_CGROUP_SKB` in `linux/bpf.h`.
const GROUP: u32 = 8;
/// `BPF_TCX_INGRESS` in `linux/bpf.h`.
const TCX_INGRESS: u32 = 46;
/// `BPF_F_BEFORE` and `BPF_F_AFTER` in `linux/bpf.h`: without a program to refer to, first and last.
const PLACES: [u32; 2] = [1 << 3, 1 << 4];
/// `BPF_FUNC_ktime_get_ns`, `BPF_FUNC_sk_release` and `BPF_FUNC_skc_lookup_tcp` in `linux/bpf.h`.
const KTIME_GET_NS: i32 = 5;
const SK_RELEASE: i32 = 86;
const SKC_LOOKUP_TCP: i32 = 99;
/// `BPF_FUNC_redirect_peer` in `linux/bpf.h`.
const REDIRECT_PEER: i32 = 155;
const LICENSE: &CStr = c"GPL";

/// What a program does with every packet.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// Lets it pass, and ends the chain: `TCX_PASS`, which most programs return.
    EndsTheChain,
    /// Drops it.
    Drops,
    /// Hands it to the other end of the virtual wire whose near end has this index (`bpf_redirect_peer`), as Cilium does
    /// with packets for a pod.
    HandsToPeerOf(u32),
}

/// What an empty program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An interface.
    Classifier,
    /// A control group.
    Group,
}

/// Where in an interface's chain a program is put.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Before all others.
    First,
    /// Behind all others.
    Last,
}

/// A program at the TCX ingress of an interface. Gone when dropped.
#[derive(Debug)]
pub struct Program {
    _link: OwnedFd,
}

/// One instruction (`struct bpf_insn`), little-endian: operation, registers, offset, immediate.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    operation: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
struct Load {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
}

/// The part that runs one on a packet: without what comes back.
#[repr(C)]
struct TestRun {
    program: u32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    nanos: u32,
}

/// The part that attaches one.
#[repr(C)]
struct Attach {
    program: u32,
    interface: u32,
    kind: u32,
    flags: u32,
    relative_to: u64,
    expected_revision: u64,
}

// === impl Program ===

impl Program {
    /// Puts a program in place.
    ///
    /// # Errors
    ///
    /// When the host has no such interface, or the kernel refuses.
    pub fn attach(host: &Host, interface: &str, place: Place, does: Does) -> Result<Self> {
        let link = host.run(|| {
            let program = load(&does.instructions())?;
            attach(&program, index(interface)?, place)
        });
        let link = link.with_context(|| format!("no program on {interface} of {}", host.role()))?;
        Ok(Self { _link: link })
    }
}

/// The index of a host's interface.
///
/// # Errors
///
/// When the host has no such interface.
pub fn interface_index(host: &Host, interface: &str) -> Result<u32> {
    host.run(|| index(interface)).with_context(|| format!("{} has no interface {interface}", host.role()))
}

// === impl Does ===

impl Does {
    fn instructions(self) -> Vec<Instruction> {
        let set = |register, immediate| Instruction { operation: 0xb7, registers: register, offset: 0, immediate };
        let call = |helper| Instruction { operation: 0x85, registers: 0, offset: 0, immediate: helper };
        let exit = Instruction { operation: 0x95, registers: 0, offset: 0, immediate: 0 };
        match self {
            Self::EndsTheChain => vec![set(0, 0), exit],
            Self::Drops => vec![set(0, 2), exit],
            Self::HandsToPeerOf(index) => vec![set(1, index.cast_signed()), set(2, 0), call(REDIRECT_PEER), exit],
        }
    }
}

/// A program that does nothing but let a packet pass.
///
/// # Errors
///
/// When the kernel refuses.
pub fn empty(kind: Kind) -> io::Result<OwnedFd> {
    let (kind, verdict) = match kind {
        Kind::Classifier => (CLASSIFIER, -1),
        Kind::Group => (GROUP, 1),
    };
    let set = Instruction { operation: 0xb7, registers: 0, offset: 0, immediate: verdict };
    load_as(kind, &[set, Instruction { operation: 0x95, registers: 0, offset: 0, immediate: 0 }])
}

/// A program that does nothing but look the socket of a segment over IPv4 up, and give it back: addresses and ports as
/// they lie in the packet.
///
/// # Errors
///
/// When the kernel refuses.
pub fn lookup(tuple: [u32; 3]) -> io::Result<OwnedFd> {
    let [source, destination, ports] = tuple.map(u32::cast_signed);
    let instruction = |operation, registers, offset, immediate| Instruction { operation, registers, offset, immediate };
    load(&[
        instruction(0x62, 10, -12, source),
        instruction(0x62, 10, -8, destination),
        instruction(0x62, 10, -4, ports),
        instruction(0xbf, 2 | 10 << 4, 0, 0),
        instruction(0x07, 2, 0, -12),
        instruction(0xb7, 3, 0, 12),
        instruction(0xb7, 4, 0, -1), // the namespace of the interface
        instruction(0xb7, 5, 0, 0),
        instruction(0x85, 0, 0, SKC_LOOKUP_TCP),
        instruction(0x15, 0, 2, 0),
        instruction(0xbf, 1, 0, 0),
        instruction(0x85, 0, 0, SK_RELEASE),
        instruction(0xb7, 0, 0, -1),
        instruction(0x95, 0, 0, 0),
    ])
}

/// A program that does nothing but ask the kernel's clock.
///
/// # Errors
///
/// When the kernel refuses.
pub fn clock() -> io::Result<OwnedFd> {
    let instruction = |operation, immediate| Instruction { operation, registers: 0, offset: 0, immediate };
    load(&[instruction(0x85, KTIME_GET_NS), instruction(0xb7, -1), instruction(0x95, 0)])
}

/// Runs a program on a frame so many times, in the network namespace of the calling thread. Returns what the kernel says
/// that one run took, in whole nanoseconds.
///
/// # Errors
///
/// When the kernel refuses.
pub fn test_run(program: BorrowedFd<'_>, frame: &[u8], repeat: u32) -> io::Result<u32> {
    let mut request = TestRun {
        program: program.as_raw_fd().cast_unsigned(),
        result: 0,
        size_in: u32::try_from(frame.len()).unwrap_or(u32::MAX),
        size_out: 0,
        data_in: frame.as_ptr().expose_provenance() as u64,
        data_out: 0,
        repeat,
        nanos: 0,
    };
    // SAFETY: the request has the layout of the kernel's structure; it and the frame live through the call, and the kernel
    // writes nothing but two of its fields.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, PROGRAM_TEST_RUN, std::ptr::from_mut(&mut request), size_of::<TestRun>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request.nanos) }
}

fn index(interface: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, interface)?)
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    load_as(CLASSIFIER, instructions)
}

fn load_as(program_type: u32, instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let request = Load {
        program_type,
        instruction_count: u32::try_from(instructions.len()).unwrap_or(0),
        instructions: instructions.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
    };
    // SAFETY: the request has the layout of the kernel's structure, which fills up with zeros what is not given; it and
    // what it points to live through the call. The result is a new descriptor.
    unsafe { call(PROGRAM_LOAD, &request) }
}

fn attach(program: &OwnedFd, interface: u32, place: Place) -> io::Result<OwnedFd> {
    let [first, last] = PLACES;
    let request = Attach {
        program: program.as_raw_fd().cast_unsigned(),
        interface,
        kind: TCX_INGRESS,
        flags: match place {
            Place::First => first,
            Place::Last => last,
        },
        relative_to: 0,
        expected_revision: 0,
    };
    // SAFETY: as above.
    unsafe { call(LINK_CREATE, &request) }
}

/// # Safety
///
/// The request must be what the command takes, and the command one that returns a new descriptor.
unsafe fn call<T>(command: libc::c_int, request: &T) -> io::Result<OwnedFd> {
    // SAFETY: see the caller's.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
