//! What is watched: TCP ports, and the two families that reach them.

use std::{fmt, num::NonZeroU16, str::FromStr};

use serde::{Deserialize, Serialize};

/// A TCP port that a listener can be bound to: 1 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Port(NonZeroU16);

/// Port 0, which no listener can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("port 0 cannot be listened on; ports go from 1 to 65535")]
pub struct PortZero;

/// An IP family. Each has its own routing rules in every node, its own EndpointSlices, and so its own quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    #[serde(rename = "IPv4")]
    V4,
    /// IPv6.
    #[serde(rename = "IPv6")]
    V6,
}

// === impl Port ===

impl Port {
    /// The number, 1 to 65535.
    pub fn number(self) -> u16 {
        self.0.get()
    }
}

impl TryFrom<u16> for Port {
    type Error = PortZero;

    fn try_from(number: u16) -> Result<Self, PortZero> {
        NonZeroU16::new(number).map(Self).ok_or(PortZero)
    }
}

impl FromStr for Port {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Family ===

impl Family {
    /// Both, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The name that verdicts, metrics and log lines use.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
