//! The one loop that reads the kernel's evidence, hands it to the core, and carries out what the core decides.

pub mod clock;
mod cluster;
mod conditions;
mod course;
mod evidence;
mod handle;
mod look;
mod probes;
mod readiness;
mod run;
mod settings;
mod sources;

pub use evidence::Reader;
pub use handle::{Drain, Gone, Handle, Request, channel};
pub use look::Look;
pub use run::{RunError, run};
