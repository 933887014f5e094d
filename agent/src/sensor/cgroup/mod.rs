//! `cgroup`: our program on the pod's control group, for pods that share the node's network: there an interface receives for
//! every pod and for the node, and by the addresses of Services, while a control group has only what met a socket of the pod.
//!
//! What meets no socket is not seen: a port that nobody listens on is *not observed*. And the namespace's counters are the
//! node's, so that nothing stands witness.

mod place;

use std::{
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
};

use aya::programs::{CgroupAttachMode, CgroupSkb, CgroupSkbAttachType, ProgramError, cgroup_skb::CgroupSkbLink};
use lastsyn_common::counters::{SELF_TEST_SLOT, UNATTRIBUTED_SLOT};
use place::PodGroup;
pub use place::PodGroupError;

use super::{
    chain,
    hook::{AttachError, Hook, Look},
    interfaces::Interface,
    maps,
    object::{CGROUP, Loaded, program},
    self_test::{self, SelfTestError},
    slots::Slots,
};
use crate::{
    core::{class::Class, listener::Port, verdict::Strategy},
    drive::clock,
};

/// How often another port is tried when the kernel has given one that is watched.
const TRIES: usize = 16;

/// The place.
pub(super) struct Cgroup {
    group: PodGroup,
    attached: Option<Attached>,
}

struct Attached {
    program: u32,
    /// Detaches when dropped.
    _link: CgroupSkbLink,
}

impl Cgroup {
    /// Finds the pod's control group. Nothing is attached yet.
    pub(super) fn find() -> Result<Self, PodGroupError> {
        Ok(Self { group: PodGroup::find()?, attached: None })
    }

    fn attach(&mut self, loaded: &mut Loaded) -> Result<(), AttachError> {
        let name = self.group.path.display().to_string();
        let failed = |error: &ProgramError| classify(&name, error);
        let program: &mut CgroupSkb = program(&mut loaded.ebpf, CGROUP)
            .map_err(|error| AttachError::Other { interface: name.clone(), detail: error.to_string() })?;
        // By a link, and a group takes any number of those. (With any other mode the kernel takes no link.)
        let link = program
            .attach(&self.group.directory, CgroupSkbAttachType::Ingress, CgroupAttachMode::Single)
            .and_then(|id| program.take_link(id))
            .map_err(|error| failed(&error))?;
        let id = program.info().map_err(|error| failed(&error))?.id();
        self.attached = Some(Attached { program: id, _link: link });
        Ok(())
    }

    fn is_in_place(&self, attached: &Attached) -> io::Result<bool> {
        let chain = chain::on_group(self.group.directory.as_fd().as_raw_fd())?;
        Ok(chain.programs.contains(&attached.program))
    }
}

impl Hook for Cgroup {
    fn strategy(&self) -> Strategy {
        Strategy::Cgroup
    }

    fn look(&mut self, loaded: &mut Loaded, _interfaces: &[Interface], reattach: bool) -> Result<Look, AttachError> {
        let name = self.group.path.display().to_string();
        let mut look = Look::default();
        match self.attached.as_ref().map(|attached| self.is_in_place(attached)) {
            Some(Ok(true)) => {} // whatever else is attached: each program of a group sees every packet
            Some(Ok(false)) if !reattach => {
                let why = "another process removed the program (sensor.reattach is off)".to_owned();
                look.unwatched.push((name, why));
            }
            Some(Ok(false)) => {
                look.broken = Some(format!("the program on {name} was removed"));
                self.attached = None;
                self.attach(loaded)?;
            }
            Some(Err(error)) => {
                look.unwatched.push((name, format!("the kernel does not say which programs run there: {error}")));
            }
            None => {
                self.attach(loaded)?;
                look.broken = Some(format!("{name} is watched only from now on"));
            }
        }
        Ok(look)
    }

    /// None of them by itself.
    fn interfaces(&self) -> Vec<String> {
        Vec::new()
    }

    /// A connection to itself: the agent is a process of the pod, and so the group's program must see it.
    fn self_test(&mut self, loaded: &mut Loaded, slots: &Slots) -> Result<(), SelfTestError> {
        let run = |error: io::Error| SelfTestError::Run(error.to_string());
        let listener = unwatched(slots).map_err(run)?;
        let address = listener.local_addr().map_err(run)?;
        maps::set_slot(loaded, address.port(), SELF_TEST_SLOT)?;
        let tested = |loaded: &Loaded| maps::attempts(loaded, SELF_TEST_SLOT).map(|counted| counted.v4.get(Class::New));
        let before = tested(loaded)?;
        let started = clock::now();
        let connected = TcpStream::connect(address).and_then(|near| Ok((near, listener.accept()?)));
        let ended = clock::now();
        let after = tested(loaded)?;
        maps::set_slot(loaded, address.port(), UNATTRIBUTED_SLOT)?;
        connected.map_err(run)?;
        self_test::judge(before, after, started, ended)
    }

    fn has_witness(&self) -> bool {
        false
    }

    /// Here a packet's socket is the one that it has met.
    fn is_on_interfaces(&self) -> bool {
        false
    }
}

/// A listener for the test, on a port that nobody watches.
fn unwatched(slots: &Slots) -> io::Result<TcpListener> {
    for _ in 0..TRIES {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = Port::try_from(listener.local_addr()?.port()).ok();
        if !slots.iter().any(|(watched, _)| Some(watched) == port) {
            return Ok(listener);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

fn classify(group: &str, error: &ProgramError) -> AttachError {
    let interface = group.to_owned();
    match error {
        ProgramError::SyscallError(call) => match call.io_error.raw_os_error() {
            Some(number @ (libc::EPERM | libc::EACCES)) => {
                AttachError::NotPermitted { interface, source: io::Error::from_raw_os_error(number) }
            }
            _ => AttachError::Other { interface, detail: call.io_error.to_string() },
        },
        other => AttachError::Other { interface, detail: other.to_string() },
    }
}
