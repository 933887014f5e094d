//! Packets as bytes: built, sent and observed on an interface, whatever a kernel would think of them.

mod observed;
mod segment;
mod socket;

pub use observed::Observed;
pub use segment::{ACK, Checksum, ExtensionHeader, FIN, PSH, RST, SYN, Segment};
pub use socket::{Capture, Sender};
