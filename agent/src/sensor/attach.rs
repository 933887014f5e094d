//! Putting the programs in place on every interface, and seeing that they stay there.

use std::{collections::BTreeMap, io};

use aya::programs::{
    LinkOrder, ProgramError, SchedClassifier, TcAttachType,
    tc::{SchedClassifierLink, TcAttachOptions, TcError},
};

use super::{
    chain,
    interfaces::{Interface, LinkLayer},
    object::{INGRESS, LOOPBACK, Loaded, classifier},
};

/// The interfaces on which a program is in place, by their index.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    attached: BTreeMap<u32, Attachment>,
}

#[derive(Debug)]
struct Attachment {
    name: String,
    program: u32,
    /// The chain's revision when our program was last seen in first place.
    revision: u64,
    /// Detaches when dropped.
    _link: SchedClassifierLink,
}

/// Why a program is not in place on an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The kernel has no TCX.
    #[error("the kernel has no TCX (it needs Linux 6.6, or a distribution's backport)")]
    NoTcx,
    /// The container may not.
    #[error(
        "the kernel does not let the agent attach to {interface} ({source}); add NET_ADMIN under securityContext.capabilities.add"
    )]
    NotPermitted {
        /// Where.
        interface: String,
        /// The kernel's word.
        #[source]
        source: io::Error,
    },
    /// Which interfaces there are is not known. What is attached stays.
    #[error("the pod's interfaces could not be listed, so that none is sure to be watched")]
    Unlisted,
    /// Anything else.
    #[error("cannot attach to {interface}: {detail}")]
    Other {
        /// Where.
        interface: String,
        /// The kernel's word.
        detail: String,
    },
}

/// What a look at the interfaces found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Something had changed since the look before: until now, not every SYN was sure to be seen.
    pub(super) broken: Option<String>,
    /// Interfaces that are up and cannot be watched: name and reason.
    pub(super) unwatched: Vec<(String, String)>,
}

impl Attachments {
    /// Looks whether our program is in place, and first, on every interface, and puts it there where it is not.
    pub(super) fn look(
        &mut self,
        loaded: &mut Loaded,
        interfaces: &[Interface],
        reattach: bool,
    ) -> Result<Look, AttachError> {
        let mut look = Look::default();
        self.attached.retain(|index, _| interfaces.iter().any(|interface| interface.index == *index));
        for interface in interfaces {
            let name = match interface.link_layer {
                LinkLayer::Ethernet => INGRESS,
                LinkLayer::Loopback => LOOPBACK,
                LinkLayer::Other(number) => {
                    if interface.up {
                        let why = format!("its frames have no Ethernet header (link type {number})");
                        look.unwatched.push((interface.name.clone(), why));
                    }
                    continue;
                }
            };
            match self.attached.get_mut(&interface.index).map(|attachment| attachment.check(interface.index)) {
                Some(Ok(Seen::InPlace)) => {}
                Some(Ok(Seen::Changed)) => {
                    look.broken = Some(format!("other programs came or went on {}", interface.name));
                }
                Some(Ok(Seen::Gone)) if !reattach => {
                    let why = "another process removed the program or put its own before it (sensor.reattach is off)";
                    look.unwatched.push((interface.name.clone(), why.to_owned()));
                }
                Some(Ok(Seen::Gone)) => {
                    look.broken = Some(format!("the program on {} was removed, or another put first", interface.name));
                    self.attached.remove(&interface.index);
                    self.attach(loaded, interface, name)?;
                }
                Some(Err(error)) => {
                    let why = format!("the kernel does not say which programs run there: {error}");
                    look.unwatched.push((interface.name.clone(), why));
                }
                None => match self.attach(loaded, interface, name) {
                    Ok(()) => look.broken = Some(format!("{} is watched only from now on", interface.name)),
                    Err(AttachError::Other { detail, .. }) if interface.up => {
                        look.unwatched.push((interface.name.clone(), detail));
                    }
                    Err(AttachError::Other { .. }) => {} // it went away again, or is down
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(look)
    }

    /// The names of the watched interfaces.
    pub(super) fn names(&self) -> Vec<String> {
        self.attached.values().map(|attachment| attachment.name.clone()).collect()
    }

    fn attach(&mut self, loaded: &mut Loaded, interface: &Interface, name: &'static str) -> Result<(), AttachError> {
        let other = |detail: &dyn std::fmt::Display| AttachError::Other {
            interface: interface.name.clone(),
            detail: detail.to_string(),
        };
        let program = classifier(&mut loaded.ebpf, name).map_err(|error| other(&error))?;
        let link = attach_first(program, &interface.name).map_err(|error| classify(&interface.name, &error))?;
        let id = program.info().map_err(|error| other(&error))?.id();
        let chain = chain::query(interface.index).map_err(|error| other(&error))?;
        if chain.programs.first() != Some(&id) {
            return Err(other(&"another program has taken the first place meanwhile"));
        }
        let attachment =
            Attachment { name: interface.name.clone(), program: id, revision: chain.revision, _link: link };
        self.attached.insert(interface.index, attachment);
        Ok(())
    }
}

enum Seen {
    InPlace,
    Changed,
    Gone,
}

impl Attachment {
    fn check(&mut self, index: u32) -> io::Result<Seen> {
        let chain = chain::query(index)?;
        let first = chain.programs.first() == Some(&self.program);
        let same = std::mem::replace(&mut self.revision, chain.revision) == chain.revision;
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
pub fn tcx_supported() -> Result<(), AttachError> {
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
