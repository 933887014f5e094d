//! Lists of addresses: `[10.0.0.1, fd00::1]`, or the same without brackets, as the downward API writes them; and names that
//! may look like numbers.

use std::{fmt, net::IpAddr};

use serde::{Deserializer, de};

use super::origin::shorten;

struct ListVisitor;

impl<'de> de::Visitor<'de> for ListVisitor {
    type Value = Vec<IpAddr>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of addresses such as [10.0.0.1, fd00::1]")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<IpAddr>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<IpAddr>, A::Error> {
        let mut addresses = Vec::new();
        while let Some(text) = entries.next_element::<String>()? {
            addresses.push(address(&text)?);
        }
        Ok(addresses)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<IpAddr>, E> {
        text.split(',').filter(|text| !text.trim().is_empty()).map(address).collect()
    }
}

fn address<E: de::Error>(text: &str) -> Result<IpAddr, E> {
    let wrong = || E::custom(format!("{:?} is not an address; write it as 10.0.0.1 or fd00::1", shorten(text)));
    text.trim().parse().map_err(|_error: std::net::AddrParseError| wrong())
}

/// For `#[serde(deserialize_with)]`.
///
/// # Errors
/// What is no address.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpAddr>, D::Error> {
    deserializer.deserialize_any(ListVisitor)
}

struct NameVisitor;

impl de::Visitor<'_> for NameVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name; put one that looks like a number into quotes")
    }

    fn visit_unit<E: de::Error>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

/// A name: also a node that is called 17.
///
/// # Errors
/// What is neither text nor a whole number.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    deserializer.deserialize_any(NameVisitor)
}
