//! The one loop that reads the kernel's evidence, hands it to the core, and carries out what the core decides.

pub mod clock;
