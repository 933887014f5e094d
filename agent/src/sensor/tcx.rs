//! `tcx`: our program first at the TCX ingress of every interface (Linux 6.6), by a link that goes with the agent.

use std::io;

use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, TcAttachType,
    tc::{SchedClassifierLink, TcAttachOptions, TcError},
};

use super::{
    attach::{Place, Seen, other},
    chain,
    hook::AttachError,
    interfaces::Interface,
};
use crate::core::verdict::Strategy;

/// The place.
#[derive(Debug, Default)]
pub(super) struct Tcx;

/// A program in place.
#[derive(Debug)]
pub(super) struct Linked {
    program: u32,
    /// The chain's revision when our program was last seen in first place.
    revision: u64,
    /// Detaches when dropped.
    _link: SchedClassifierLink,
}

impl Place for Tcx {
    type Attached = Linked;

    const STRATEGY: Strategy = Strategy::Tcx;

    fn attach(&mut self, program: &mut SchedClassifier, interface: &Interface) -> Result<Linked, AttachError> {
        let link = attach_first(program, &interface.name).map_err(|error| classify(&interface.name, &error))?;
        let id = program.info().map_err(|error| other(interface, &error))?.id();
        let chain = chain::query(interface.index).map_err(|error| other(interface, &error))?;
        if chain.programs.first() != Some(&id) {
            return Err(other(interface, &"another program has taken the first place meanwhile"));
        }
        Ok(Linked { program: id, revision: chain.revision, _link: link })
    }

    fn check(&mut self, attached: &mut Linked, interface: &Interface) -> Result<Seen, String> {
        let chain = chain::query(interface.index).map_err(|error| error.to_string())?;
        let first = chain.programs.first() == Some(&attached.program);
        let same = std::mem::replace(&mut attached.revision, chain.revision) == chain.revision;
        Ok(match (first, same) {
            (true, true) => Seen::InPlace,
            (true, false) => Seen::Changed,
            (false, _) => Seen::Gone,
        })
    }
}

/// Whether the kernel has TCX, by asking for the loopback's chain. Changes nothing.
///
/// # Errors
///
/// If it has none, or the agent may not ask.
pub(super) fn tcx_supported() -> Result<(), AttachError> {
    // The loopback device of every namespace has this index (`LOOPBACK_IFINDEX` in `include/net/net_namespace.h`).
    const LOOPBACK_INDEX: u32 = 1;
    chain::query(LOOPBACK_INDEX).map(drop).map_err(|error| from_io("lo", &error))
}

/// First in the chain, as programs of others may end it; by a link that goes with the agent.
fn attach_first(program: &mut SchedClassifier, interface: &str) -> Result<SchedClassifierLink, ProgramError> {
    let options = TcAttachOptions::TcxOrder(LinkOrder::first());
    let id = program.attach_with_options(interface, TcAttachType::Ingress, options)?;
    program.take_link(id)
}

fn classify(interface: &str, error: &ProgramError) -> AttachError {
    match error {
        ProgramError::SyscallError(call) => from_io(interface, &call.io_error),
        ProgramError::TcError(TcError::IoError(io_error)) => from_io(interface, io_error),
        other => AttachError::Other { interface: interface.to_owned(), detail: other.to_string() },
    }
}

fn from_io(interface: &str, error: &io::Error) -> AttachError {
    let interface = interface.to_owned();
    match error.raw_os_error() {
        // A kernel without TCX does not know the attach type (`link_create` and `bpf_prog_query` in
        // `kernel/bpf/syscall.c`).
        Some(libc::EINVAL) => AttachError::NoTcx,
        Some(number @ (libc::EPERM | libc::EACCES)) => {
            AttachError::NotPermitted { interface, source: io::Error::from_raw_os_error(number) }
        }
        _ => AttachError::Other { interface, detail: error.to_string() },
    }
}
