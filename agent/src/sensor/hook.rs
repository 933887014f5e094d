//! Where the kernel runs the counting program: what every such place has in common.

use std::io;

use super::{interfaces::Interface, object::Loaded, self_test::SelfTestError, slots::Slots};
use crate::core::verdict::Strategy;

/// A place at which the kernel runs the counting program.
pub(super) trait Hook {
    /// What it is called.
    fn strategy(&self) -> Strategy;

    /// Looks whether the program is in place, and puts it there where it is not and that is wanted.
    fn look(&mut self, loaded: &mut Loaded, interfaces: &[Interface], reattach: bool) -> Result<Look, AttachError>;

    /// The names of the watched interfaces.
    fn interfaces(&self) -> Vec<String>;

    /// Has the program count something of which the agent knows, and looks whether it did, by the agent's own clock.
    fn self_test(&mut self, loaded: &mut Loaded, slots: &Slots) -> Result<(), SelfTestError>;

    /// Whether the program sees frames as an interface receives them: there alone it knows which process of the node sent a
    /// SYN, and counts datagrams.
    fn is_on_interfaces(&self) -> bool {
        true
    }

    /// Whether the namespace's own count of handshakes can be held against what the program sees (S3).
    fn has_witness(&self) -> bool {
        true
    }
}

/// What a look at the interfaces found.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Something had changed since the look before: until now, not every SYN was sure to be seen.
    pub(super) broken: Option<String>,
    /// What is up and cannot be watched: name and reason.
    pub(super) unwatched: Vec<(String, String)>,
}

/// Why a program is not in place.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The kernel has no TCX.
    #[error("the kernel has no TCX (it needs Linux 6.6, or a distribution's backport)")]
    NoTcx,
    /// The kernel lacks the older traffic control.
    #[error(
        "the kernel has no clsact queueing discipline or no BPF filter for it (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF): {0}"
    )]
    NoClsact(#[source] io::Error),
    /// Another's filter cannot be got in front of.
    #[error(
        "another's filter has the first priority at the ingress of {interface}, and the agent's cannot come before it"
    )]
    Occupied {
        /// Where.
        interface: String,
    },
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
