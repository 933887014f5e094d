//! The kernel's evidence: SYNs per watched port and family, and the counters that watch over the count.

mod attach;
mod capabilities;
mod chain;
mod interfaces;
mod link_changes;
mod maps;
pub mod namespace;
mod object;
mod program_log;
mod select;
mod self_test;
mod slots;
mod tcx;

pub use attach::{AttachError, tcx_supported};
pub use capabilities::{Capability, MissingCapabilities, missing_capabilities};
pub use interfaces::{Interface, InterfaceError, Interfaces, LinkLayer, families};
pub use link_changes::LinkChanges;
pub use object::{LoadError, Loaded};
pub use select::{Choice, SelectError, Sensor};
pub use self_test::SelfTestError;
pub use slots::SlotsFull;
pub use tcx::{Tcx, TcxError};
