//! What is watched: ports of TCP and of QUIC, and the two families that reach them.

use std::{fmt, num::NonZeroU16, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::class::Class;

/// A port that a listener can be bound to: 1 to 65535, of TCP where nothing else is said. Written as `443` and `443/udp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    number: NonZeroU16,
    protocol: Protocol,
}

/// The transport protocol of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    /// UDP, of which QUIC is watched.
    #[serde(rename = "UDP")]
    Udp,
}

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
        self.number.get()
    }

    /// Of which protocol it is.
    pub fn protocol(self) -> Protocol {
        self.protocol
    }

    /// The port of the same number of another protocol.
    #[must_use]
    pub fn of(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }
}

impl Protocol {
    /// Whether attempts of a class can be told. A datagram that opens a connection is `new`, or `refused` where there is no
    /// socket for it; what becomes of it later is encrypted.
    pub fn tells(self, class: Class) -> bool {
        match self {
            Self::Tcp => true,
            Self::Udp => matches!(class, Class::New | Class::Refused | Class::Opaque | Class::Ignored),
        }
    }
}

impl TryFrom<u16> for Port {
    type Error = PortZero;

    fn try_from(number: u16) -> Result<Self, PortZero> {
        let number = NonZeroU16::new(number).ok_or(PortZero)?;
        Ok(Self { number, protocol: Protocol::Tcp })
    }
}

impl FromStr for Port {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, protocol) = match text.strip_suffix("/udp") {
            Some(number) => (number, Protocol::Udp),
            None => (text, Protocol::Tcp),
        };
        Ok(Self { number: number.parse()?, protocol })
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Tcp => self.number.fmt(f),
            Protocol::Udp => f.pad(&format!("{}/udp", self.number)),
        }
    }
}

impl Serialize for Port {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.protocol {
            Protocol::Tcp => self.number.serialize(serializer),
            Protocol::Udp => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Port;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port such as 443 or 443/udp")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Port, E> {
                let wrong = || E::invalid_value(de::Unexpected::Unsigned(number), &self);
                u16::try_from(number).ok().and_then(|number| Port::try_from(number).ok()).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Port, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_written_as_it_is_read() {
        for (text, json) in [("443", "443"), ("443/udp", "\"443/udp\"")] {
            let port: Port = text.parse().unwrap();
            assert_eq!(port.to_string(), text);
            assert_eq!(serde_json::to_string(&port).unwrap(), json);
            assert_eq!(serde_json::from_str::<Port>(json).unwrap(), port);
        }
        for json in ["0", "65536", "\"443/sctp\"", "\"0/udp\"", "-1"] {
            assert!(serde_json::from_str::<Port>(json).is_err(), "{json}");
        }
        assert_ne!("443".parse::<Port>().unwrap(), "443/udp".parse::<Port>().unwrap());
    }
}
