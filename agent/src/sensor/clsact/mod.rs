//! `clsact`: our program as the first filter at the ingress of every interface, for kernels without TCX.
//!
//! Here nothing goes with the agent by itself: a filter stays when its agent is killed, and so does the queueing discipline
//! that it hangs on. What a killed agent has left is swept at the next start. What others have made stays, and the
//! discipline goes only if an agent made it and nobody else has put a filter on it meanwhile.

mod control;
mod owner;

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd, AsRawFd},
    rc::Rc,
};

use aya::programs::SchedClassifier;
use control::{Control, Filter, Side};
use owner::{Claim, Owner, made_discipline};

use super::{
    attach::{Place, Seen, other},
    chain,
    hook::AttachError,
    interfaces::Interface,
};
use crate::core::verdict::Strategy;

/// The first that there is.
const PRIORITY: u16 = 1;
/// The filters' name, by which agents know each other's.
const NAME: &str = "lastsyn";

/// The place.
pub(super) struct Clsact {
    control: Rc<Control>,
    claim: Claim,
    /// Interfaces whose filters have changed, by no doing of an agent.
    changed: Changed,
}

#[derive(Debug, Default)]
struct Changed {
    interfaces: BTreeSet<u32>,
    /// The kernel could not tell of all: each interface may be one until it is next looked at.
    lost: u64,
}

/// A filter in place.
pub(super) struct Attached {
    control: Rc<Control>,
    interface: u32,
    handle: u32,
    program: u32,
    /// How often the kernel could not tell of all changes, when it was last looked at.
    lost: u64,
}

impl Clsact {
    /// Opens what is needed. Nothing is attached yet.
    ///
    /// # Errors
    ///
    /// If there is no netlink socket to be had.
    pub(super) fn open() -> Result<Self, AttachError> {
        let failed = |error: io::Error| AttachError::Other { interface: "any".to_owned(), detail: error.to_string() };
        let control = Rc::new(Control::open().map_err(failed)?);
        Ok(Self { control, claim: Claim::new().map_err(failed)?, changed: Changed::default() })
    }

    /// Whether the agent can ask. That the kernel takes filters shows only when one is attached.
    pub(super) fn supported() -> Result<(), AttachError> {
        Self::open().map(drop)
    }

    /// Removes what killed agents have left on an interface. Returns whether one of them had made the discipline.
    fn sweep(&self, interface: u32) -> io::Result<bool> {
        let filters = self.control.filters(interface, Side::Ingress).unwrap_or_default(); // none without a discipline
        let mut inherited = false;
        for filter in filters.iter().filter(|filter| filter.is_an_agents() && !Owner::of(filter.handle).runs()) {
            self.control.remove(interface, filter.priority, filter.handle)?;
            inherited |= made_discipline(filter.handle);
            tracing::info!(interface, handle = filter.handle, "removed the filter of an agent that was killed");
        }
        Ok(inherited)
    }

    fn note_changes(&mut self) {
        match self.control.changes() {
            None => self.changed.lost += 1,
            Some(changes) => {
                let others = changes.into_iter().filter(|change| change.name.as_deref() != Some(NAME));
                self.changed.interfaces.extend(others.map(|change| change.interface));
            }
        }
    }

    /// Whether the filter is there and no other comes before it but those of agents, which let every packet pass.
    fn is_first(&self, interface: u32, handle: u32, program: u32) -> io::Result<bool> {
        let filters = self.control.filters(interface, Side::Ingress)?;
        let ours =
            |filter: &Filter| filter.handle == handle && filter.program == Some(program) && filter.is_an_agents();
        let first = filters.iter().find(|filter| ours(filter) || !filter.is_an_agents());
        Ok(first.is_some_and(ours))
    }

    fn put(&self, program: &SchedClassifier, interface: &Interface) -> Result<Attached, AttachError> {
        let failed = |error: io::Error| classify(&interface.name, error);
        let index = interface.index;
        let inherited = self.sweep(index).map_err(failed)?;
        let made = self.control.add_clsact(index).map_err(failed)?;
        let attached = Attached {
            control: Rc::clone(&self.control),
            interface: index,
            handle: self.claim.owner.handle(made || inherited),
            program: program.info().map_err(|error| other(interface, &error))?.id(),
            lost: self.changed.lost,
        };
        let descriptor = program.fd().map_err(|error| other(interface, &error))?;
        let added = self.control.add(index, PRIORITY, attached.handle, NAME, descriptor.as_fd().as_raw_fd());
        added.map_err(|error| {
            let occupied = self.control.filters(index, Side::Ingress).is_ok_and(|filters| {
                filters.iter().any(|filter| filter.priority == PRIORITY && !filter.is_an_agents())
            });
            let refused = error.raw_os_error() == Some(libc::EINVAL);
            if occupied && refused {
                AttachError::Occupied { interface: interface.name.clone() }
            } else {
                failed(error)
            }
        })?;
        Ok(attached)
    }
}

impl Place for Clsact {
    type Attached = Attached;

    const STRATEGY: Strategy = Strategy::Clsact;

    fn attach(&mut self, program: &mut SchedClassifier, interface: &Interface) -> Result<Attached, AttachError> {
        let mut attached = self.put(program, interface)?;
        // What has changed up to now may have hidden packets up to now, and nobody takes them for seen yet.
        self.note_changes();
        self.changed.interfaces.remove(&interface.index);
        attached.lost = self.changed.lost;
        match self.is_first(interface.index, attached.handle, attached.program) {
            Ok(true) => Ok(attached),
            Ok(false) => Err(AttachError::Occupied { interface: interface.name.clone() }),
            Err(error) => Err(other(interface, &error)),
        }
    }

    fn check(&mut self, attached: &mut Attached, interface: &Interface) -> Result<Seen, String> {
        // Where the kernel has TCX, its programs see a packet first. It asks nobody else if one says that it is done.
        if let Ok(chain) = chain::query(interface.index)
            && !chain.programs.is_empty()
        {
            return Err("a TCX program of another runs before the filter, and may hide packets from it".to_owned());
        }
        self.note_changes();
        let changed = self.changed.interfaces.remove(&interface.index);
        let lost = std::mem::replace(&mut attached.lost, self.changed.lost) != self.changed.lost;
        let first = self.is_first(interface.index, attached.handle, attached.program);
        Ok(match (first.map_err(|error| error.to_string())?, changed || lost) {
            (true, false) => Seen::InPlace,
            (true, true) => Seen::Changed,
            (false, _) => Seen::Gone,
        })
    }
}

impl Filter {
    fn is_an_agents(&self) -> bool {
        self.name.as_deref() == Some(NAME) && self.priority == PRIORITY
    }
}

impl Attached {
    fn take_away(&self) -> io::Result<()> {
        let removed = self.control.remove(self.interface, PRIORITY, self.handle);
        if !made_discipline(self.handle) {
            return removed;
        }
        for side in [Side::Ingress, Side::Egress] {
            if !self.control.filters(self.interface, side)?.is_empty() {
                return removed;
            }
        }
        self.control.remove_clsact(self.interface)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Err(error) = self.take_away() {
            // Another has removed it, or the interface has gone.
            tracing::debug!(interface = self.interface, %error, "nothing to take away");
        }
    }
}

fn classify(interface: &str, error: io::Error) -> AttachError {
    let interface = interface.to_owned();
    match error.raw_os_error() {
        // No such kind (`qdisc_lookup_ops` in `net/sched/sch_api.c`, `tcf_proto_lookup_ops` in `net/sched/cls_api.c`).
        Some(libc::ENOENT | libc::EOPNOTSUPP) => AttachError::NoClsact(error),
        Some(libc::EPERM | libc::EACCES) => AttachError::NotPermitted { interface, source: error },
        _ => AttachError::Other { interface, detail: error.to_string() },
    }
}
