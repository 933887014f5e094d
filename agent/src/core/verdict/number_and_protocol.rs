//! How a port is written: its number and its protocol.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Port;
use crate::core::listener::Protocol;

#[derive(Serialize, Deserialize)]
struct Written {
    port: u16,
    protocol: Protocol,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
pub(super) fn serialize<S: Serializer>(port: &Port, serializer: S) -> Result<S::Ok, S::Error> {
    Written { port: port.number(), protocol: port.protocol() }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
    let Written { port, protocol } = Written::deserialize(deserializer)?;
    Port::try_from(port).map(|port| port.of(protocol)).map_err(de::Error::custom)
}
