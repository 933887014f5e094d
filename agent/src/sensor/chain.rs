//! Which programs run at the TCX ingress of an interface, and in which order; and which on a control group.

#![expect(unsafe_code, reason = "the system call for it; aya's query needs CAP_SYS_ADMIN, to open others' programs")]

use std::{io, os::fd::RawFd};

/// `BPF_PROG_QUERY` in `linux/bpf.h`.
const PROG_QUERY: libc::c_int = 16;
/// `BPF_TCX_INGRESS` in `linux/bpf.h`.
const TCX_INGRESS: u32 = 46;
/// `BPF_CGROUP_INET_INGRESS` in `linux/bpf.h`.
const GROUP_INGRESS: u32 = 0;
/// More programs than anybody chains; the kernel says ENOSPC beyond.
const AT_MOST: usize = 64;

/// What the kernel says of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Changes with every change of the chain; of a control group only in newer kernels.
    pub(super) revision: u64,
    /// The ids of its programs, in the order in which they run.
    pub(super) programs: Vec<u32>,
}

/// The query's part of `union bpf_attr` in `linux/bpf.h`.
#[expect(clippy::struct_field_names, reason = "the kernel's names")]
#[repr(C)]
#[derive(Default)]
struct Query {
    target: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    padding: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// Asks for the chain of an interface. Needs `CAP_NET_ADMIN`.
pub(super) fn query(interface: u32) -> io::Result<Chain> {
    ask(interface, TCX_INGRESS)
}

/// Asks for the programs of a control group, by a descriptor of its directory. Needs `CAP_NET_ADMIN`.
pub(super) fn on_group(directory: RawFd) -> io::Result<Chain> {
    ask(directory.cast_unsigned(), GROUP_INGRESS)
}

fn ask(target: u32, attach_type: u32) -> io::Result<Chain> {
    let mut ids = [0_u32; AT_MOST];
    let mut query = Query {
        target,
        attach_type,
        prog_ids: ids.as_mut_ptr().expose_provenance() as u64,
        count: u32::try_from(ids.len()).unwrap_or(0),
        ..Query::default()
    };
    // SAFETY: `query` has the layout of the kernel's structure and lives through the call; `prog_ids` points to `count`
    // writable numbers.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_QUERY, std::ptr::from_mut(&mut query), size_of::<Query>()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let count = usize::try_from(query.count).unwrap_or(0);
    Ok(Chain { revision: query.revision, programs: ids.into_iter().take(count).collect() })
}
