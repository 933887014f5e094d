//! Putting the programs in place on every interface, and seeing that they stay there.

use std::collections::BTreeMap;

use aya::programs::SchedClassifier;

use super::{
    hook::{AttachError, Hook, Look},
    interfaces::{Interface, LinkLayer},
    object::{INGRESS, LOOPBACK, Loaded, classifier},
    self_test::{self, SelfTestError},
    slots::Slots,
};
use crate::core::verdict::Strategy;

/// A place in the way of an interface's packets, of which each interface has its own.
pub(super) trait Place {
    /// A program in place on one interface. Takes it away when dropped.
    type Attached;

    /// What it is called.
    const STRATEGY: Strategy;

    /// Puts a program in place, before those of others.
    fn attach(&mut self, program: &mut SchedClassifier, interface: &Interface) -> Result<Self::Attached, AttachError>;

    /// Looks whether it is still there; in words, if the kernel does not say.
    fn check(&mut self, attached: &mut Self::Attached, interface: &Interface) -> Result<Seen, String>;
}

/// What a look at one interface found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The program is in place and first, and was so without a break since the look before.
    InPlace,
    /// It is, and something has changed in between.
    Changed,
    /// It is not there, or not first.
    Gone,
}

/// The interfaces on which a program is in place, by their index.
pub(super) struct Attachments<P: Place> {
    place: P,
    attached: BTreeMap<u32, Attachment<P::Attached>>,
}

struct Attachment<A> {
    name: String,
    attached: A,
}

impl<P: Place> Attachments<P> {
    pub(super) fn new(place: P) -> Self {
        Self { place, attached: BTreeMap::new() }
    }

    fn attach(&mut self, loaded: &mut Loaded, interface: &Interface, name: &'static str) -> Result<(), AttachError> {
        let program = classifier(&mut loaded.ebpf, name).map_err(|error| other(interface, &error))?;
        let attached = self.place.attach(program, interface)?;
        self.attached.insert(interface.index, Attachment { name: interface.name.clone(), attached });
        Ok(())
    }

    fn check(&mut self, interface: &Interface) -> Option<Result<Seen, String>> {
        let attachment = self.attached.get_mut(&interface.index)?;
        Some(self.place.check(&mut attachment.attached, interface))
    }
}

impl<P: Place> Hook for Attachments<P> {
    fn strategy(&self) -> Strategy {
        P::STRATEGY
    }

    fn look(&mut self, loaded: &mut Loaded, interfaces: &[Interface], reattach: bool) -> Result<Look, AttachError> {
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
            match self.check(interface) {
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

    fn interfaces(&self) -> Vec<String> {
        self.attached.values().map(|attachment| attachment.name.clone()).collect()
    }

    fn self_test(&mut self, loaded: &mut Loaded, _slots: &Slots) -> Result<(), SelfTestError> {
        self_test::run(loaded)
    }
}

/// Any other reason.
pub(super) fn other(interface: &Interface, detail: &dyn std::fmt::Display) -> AttachError {
    AttachError::Other { interface: interface.name.clone(), detail: detail.to_string() }
}
