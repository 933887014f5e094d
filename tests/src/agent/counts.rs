//! Counts in a status or verdict, by the names that other people's tools read them by.

use serde_json::Value;

/// What reached a listener over one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// SYNs.
    pub new: u64,
    /// Packets that may have been SYNs.
    pub opaque: u64,
}

/// What a status or verdict says of a port and a family (`IPv4`, `IPv6`); `None` when it says nothing of it.
pub fn counts(of: &Value, port: u16, family: &str) -> Option<Counts> {
    let listeners = of.get("listeners")?.as_array()?;
    let listener = listeners.iter().find(|listener| listener.get("port") == Some(&port.into()))?;
    let families = listener.get("families")?.as_array()?;
    let counts = families.iter().find(|counts| counts.get("family") == Some(&family.into()))?;
    let number = |class| counts.get(class).and_then(Value::as_u64);
    Some(Counts { new: number("new")?, opaque: number("opaque")? })
}
