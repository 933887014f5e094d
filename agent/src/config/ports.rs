//! Lists of ports: `[80, 443, 443/udp]`, or `80,443` where a list is awkward to write.

use std::fmt;

use serde::{Deserializer, Serialize, Serializer, de};

use super::{model::Watch, origin::shorten};
use crate::core::listener::{Port, PortZero, Protocol};

/// Why something is no port to watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Port 0.
    #[error(transparent)]
    Zero(#[from] PortZero),
    /// `443/sctp` and the like.
    #[error("{0}: a port is one of TCP, as 443, or of UDP for QUIC, as 443/udp")]
    Protocol(String),
    /// Not a number from 1 to 65535.
    #[error("{0:?} is not a port; ports go from 1 to 65535")]
    NotAPort(String),
}

pub(super) fn from_number(number: u64) -> Result<Port, PortError> {
    let number = u16::try_from(number).map_err(|_above| PortError::NotAPort(number.to_string()))?;
    Ok(Port::try_from(number)?)
}

fn from_text(text: &str) -> Result<Port, PortError> {
    let text = text.trim();
    let (number, protocol) = match text.split_once('/') {
        Some((number, protocol)) if protocol.eq_ignore_ascii_case("tcp") => (number, Protocol::Tcp),
        Some((number, protocol)) if protocol.eq_ignore_ascii_case("udp") => (number, Protocol::Udp),
        Some((number, _)) if number.parse::<u16>().is_ok() => return Err(PortError::Protocol(shorten(text))),
        _ => (text, Protocol::Tcp),
    };
    // `u16::from_str` also takes a sign.
    match number.parse() {
        Ok(number_read) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
            from_number(number_read).map(|port| port.of(protocol))
        }
        _ => Err(PortError::NotAPort(shorten(text))),
    }
}

/// One entry, as number or text.
struct Entry(Port);

impl<'de> de::Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port from 1 to 65535")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Entry, E> {
                from_number(number).map(Entry).map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Entry, E> {
                Err(E::custom(PortError::NotAPort(number.to_string())))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Entry, E> {
                from_text(text).map(Entry).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

struct ListVisitor;

impl<'de> de::Visitor<'de> for ListVisitor {
    type Value = Vec<Port>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of ports such as [80, 443]")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<Port>, A::Error> {
        let mut ports = Vec::new();
        while let Some(Entry(port)) = entries.next_element()? {
            ports.push(port);
        }
        Ok(ports)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Vec<Port>, E> {
        from_number(number).map(|port| vec![port]).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Vec<Port>, E> {
        Err(E::custom(PortError::NotAPort(number.to_string())))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Port>, E> {
        text.split(',').map(from_text).collect::<Result<_, _>>().map_err(E::custom)
    }
}

/// For `#[serde(deserialize_with)]` of one port.
///
/// # Errors
/// See [`PortError`].
pub(super) fn deserialize_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Port, D::Error> {
    let Entry(port) = de::Deserialize::deserialize(deserializer)?;
    Ok(port)
}

/// For `#[serde(deserialize_with)]`.
///
/// # Errors
/// See [`PortError`].
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Port>, D::Error> {
    deserializer.deserialize_any(ListVisitor)
}

// === impl Watch ===

impl Serialize for Watch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Ports(ports) => ports.serialize(serializer),
        }
    }
}

impl<'de> de::Deserialize<'de> for Watch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Watch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("auto, or a list of ports such as [80, 443]")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Watch, E> {
                match text.trim() {
                    "auto" => Ok(Watch::Auto),
                    text => ListVisitor.visit_str(text).map(Watch::Ports),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, entries: A) -> Result<Watch, A::Error> {
                ListVisitor.visit_seq(entries).map(Watch::Ports)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Watch, E> {
                ListVisitor.visit_u64(number).map(Watch::Ports)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Watch, E> {
                ListVisitor.visit_i64(number).map(Watch::Ports)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ports_of_tcp_and_udp() {
        assert_eq!(from_text("443").map(Port::number), Ok(443));
        assert_eq!(from_text(" 443/TCP ").map(Port::number), Ok(443));
        assert_eq!(from_text("0"), Err(PortError::Zero(PortZero)));
        assert_eq!(from_text("443/udp").map(|port| (port.number(), port.protocol())), Ok((443, Protocol::Udp)));
        assert_eq!(from_text("443/sctp"), Err(PortError::Protocol("443/sctp".into())));
        for text in ["", "65536", "-1", "+80", "http", "80-90", "udp/443"] {
            assert_eq!(from_text(text), Err(PortError::NotAPort(text.into())), "{text}");
        }
    }
}
