//! Counts in a status or verdict, by the names that other people's tools read them by.

use serde_json::Value;

/// What reached a listener over one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// SYNs that a listener took.
    pub new: u64,
    /// SYNs whose handshake was under way.
    pub retransmit: u64,
    /// SYNs that met no socket.
    pub refused: u64,
    /// SYNs for a further subflow of a connection.
    pub join: u64,
    /// Packets that may have been SYNs.
    pub opaque: u64,
    /// SYNs on a flow that had a connection.
    pub stray: u64,
    /// SYNs from a source that the operator named.
    pub ignored: u64,
    /// SYNs of kubelet's probes.
    pub probe: u64,
}

impl Counts {
    /// Nothing but this many new ones.
    pub fn new(new: u64) -> Self {
        Self { new, ..Self::default() }
    }

    /// What came since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            new: self.new - earlier.new,
            retransmit: self.retransmit - earlier.retransmit,
            refused: self.refused - earlier.refused,
            join: self.join - earlier.join,
            opaque: self.opaque - earlier.opaque,
            stray: self.stray - earlier.stray,
            ignored: self.ignored - earlier.ignored,
            probe: self.probe - earlier.probe,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            new: self.new + other.new,
            retransmit: self.retransmit + other.retransmit,
            refused: self.refused + other.refused,
            join: self.join + other.join,
            opaque: self.opaque + other.opaque,
            stray: self.stray + other.stray,
            ignored: self.ignored + other.ignored,
            probe: self.probe + other.probe,
        }
    }

    /// Of every class.
    pub fn sum(self) -> u64 {
        let Self { new, retransmit, refused, join, opaque, stray, ignored, probe } = self;
        new + retransmit + refused + join + opaque + stray + ignored + probe
    }
}

/// What a status or verdict says of a port and a family (`IPv4`, `IPv6`); `None` when it says nothing of it. A class that
/// the sensor cannot tell is 0.
pub fn counts(of: &Value, port: u16, family: &str) -> Option<Counts> {
    let listeners = of.get("listeners")?.as_array()?;
    let listener = listeners.iter().find(|listener| listener.get("port") == Some(&port.into()))?;
    let families = listener.get("families")?.as_array()?;
    let counts = families.iter().find(|counts| counts.get("family") == Some(&family.into()))?;
    let number = |class| counts.get(class).and_then(Value::as_u64);
    Some(Counts {
        new: number("new")?,
        retransmit: number("retransmit").unwrap_or(0),
        refused: number("refused").unwrap_or(0),
        join: number("join").unwrap_or(0),
        opaque: number("opaque")?,
        stray: number("stray").unwrap_or(0),
        ignored: number("ignored")?,
        probe: number("probe").unwrap_or(0),
    })
}
