//! The kernel's evidence: SYNs per watched port and family, and the counters that watch over the count.

mod attach;
mod capabilities;
mod cgroup;
mod chain;
mod clsact;
mod counts;
mod hook;
mod interfaces;
mod link_changes;
mod maps;
pub mod namespace;
mod object;
mod packet;
mod preflight;
mod program_log;
mod programs;
mod scope;
mod select;
mod self_test;
mod slots;
mod tcx;

pub use capabilities::{Capability, MissingCapabilities};
pub use cgroup::PodGroupError;
pub use counts::{Around, Counts, Sensor};
pub use hook::AttachError;
pub use interfaces::{Interface, InterfaceError, Interfaces, LinkLayer, families};
pub use link_changes::LinkChanges;
pub use object::LoadError;
pub use packet::{OwnTestError, PacketError};
pub use preflight::{capabilities, preflight};
pub use programs::ProgramsError;
pub use scope::Scope;
pub use select::{Choice, SelectError, Selected, Setting, StartError, in_order, told};
pub use self_test::SelfTestError;
pub use slots::SlotsFull;
