//! Lists of networks: `[192.0.2.0/24, 2001:db8::/32]`, or the same without brackets where a list is awkward to write.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::origin::shorten;

/// The addresses that begin alike: `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// Why something is no network whose connections can be ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Not of the form.
    #[error("{0:?} is not a network; write it as 192.0.2.0/24 or 2001:db8::/32, or as an address alone")]
    NotANetwork(String),
    /// `192.0.2.7/24`.
    #[error("{network} has bits behind its length; did you mean {meant}?")]
    BitsBehind {
        /// As it was written.
        network: Network,
        /// Without them.
        meant: Network,
    },
    /// `0.0.0.0/0`.
    #[error("{0} is every address of its family: no new connection would hold a drain any more")]
    Everybody(Network),
    /// `::ffff:192.0.2.1`.
    #[error("{0} is an IPv4 address in IPv6's clothes; packets carry it as IPv4, so write it as that")]
    Mapped(Network),
}

// === impl Network ===

impl Network {
    /// The first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits all addresses share: 1 to 32 or 128.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether an address is one of them.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Self { address, length: self.length }.without_bits_behind() == self
    }

    fn without_bits_behind(self) -> Self {
        let Self { address, length } = self;
        let address = match address {
            IpAddr::V4(v4) => {
                let behind = u32::MAX.checked_shr(length.into()).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & !behind).into()
            }
            IpAddr::V6(v6) => {
                let behind = u128::MAX.checked_shr(length.into()).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & !behind).into()
            }
        };
        Self { address, length }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let wrong = || NetworkError::NotANetwork(shorten(text));
        let text = text.trim();
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_error: std::net::AddrParseError| wrong())?;
        let longest: u8 = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => longest,
            // `u8::from_str` also takes a sign.
            Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().ok().filter(|length| *length <= longest).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        let network = Self { address, length };
        let meant = network.without_bits_behind();
        if meant != network {
            return Err(NetworkError::BitsBehind { network, meant });
        }
        if length == 0 {
            return Err(NetworkError::Everybody(network));
        }
        if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
            return Err(NetworkError::Mapped(network));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

struct ListVisitor;

impl<'de> de::Visitor<'de> for ListVisitor {
    type Value = Vec<Network>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of networks such as [192.0.2.0/24, 2001:db8::/32]")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<Network>, A::Error> {
        let mut networks = Vec::new();
        while let Some(network) = entries.next_element()? {
            networks.push(network);
        }
        Ok(networks)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Network>, E> {
        text.split(',').map(|network| network.parse().map_err(E::custom)).collect()
    }
}

/// For `#[serde(deserialize_with)]`.
///
/// # Errors
/// See [`NetworkError`].
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Network>, D::Error> {
    deserializer.deserialize_any(ListVisitor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, NetworkError> {
        text.parse::<Network>().map(|network| network.to_string())
    }

    #[test]
    fn reads_networks_of_both_families() {
        for text in
            ["192.0.2.0/24", "10.0.0.0/8", "128.0.0.0/1", "192.0.2.7/32", "2001:db8::/32", "8000::/1", "::1/128"]
        {
            assert_eq!(read(text), Ok(text.to_owned()));
        }
        assert_eq!(read(" 192.0.2.7 "), Ok("192.0.2.7/32".to_owned()));
        assert_eq!(read("2001:db8::7"), Ok("2001:db8::7/128".to_owned()));
    }

    #[test]
    fn refuses_what_is_none_and_what_cannot_be_meant() {
        for text in
            ["", "/", "192.0.2.0/", "192.0.2.0/33", "192.0.2/24", "2001:db8::/129", "10.0.0.0/+8", "10.0.0.0/-1", "x/8"]
        {
            assert!(matches!(read(text), Err(NetworkError::NotANetwork(_))), "{text}");
        }
        let message = |text| read(text).unwrap_err().to_string();
        assert!(message("192.0.2.7/24").contains("did you mean 192.0.2.0/24?"));
        assert!(message("2001:db8::1/64").contains("did you mean 2001:db8::/64?"));
        assert!(message("0.0.0.0/0").contains("every address"));
        assert!(message("::/0").contains("every address"));
        assert!(message("::ffff:192.0.2.1").contains("write it as that"));
    }
}
