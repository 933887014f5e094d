//! `listeners.probes`: `auto`, `off`, or a list such as `[{port: 8080, period: 10s}]`.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, value::MapAccessDeserializer},
};

use super::{duration, ports};
use crate::core::{
    listener::{Port, Protocol},
    probe::ProbePort,
};

/// At which ports kubelet probes this pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Probes {
    /// Those of the probes in the pod's own object.
    #[default]
    Auto,
    /// No probe is told from clients.
    Off,
    /// These. A port may be there more than once, with other periods.
    Ports(Vec<ProbePort>),
}

impl Probes {
    /// Those that the operator lists.
    pub fn listed(&self) -> &[ProbePort] {
        match self {
            Self::Auto | Self::Off => &[],
            Self::Ports(ports) => ports,
        }
    }
}

impl Serialize for Probes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Off => serializer.serialize_str("off"),
            Self::Ports(ports) => {
                serializer.collect_seq(ports.iter().map(|&ProbePort { port, period }| Written { port, period }))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Probes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ProbesVisitor)
    }
}

/// An entry in full.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(deserialize_with = "ports::deserialize_one")]
    port: Port,
    #[serde(with = "duration", default = "default_period")]
    period: Duration,
}

fn default_period() -> Duration {
    ProbePort::DEFAULT_PERIOD
}

struct ProbesVisitor;

impl<'de> de::Visitor<'de> for ProbesVisitor {
    type Value = Probes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("auto, off, or a list such as [{port: 8080, period: 10s}]")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Probes, E> {
        match text.trim() {
            "auto" => Ok(Probes::Auto),
            "off" => Ok(Probes::Off),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Probes, A::Error> {
        let mut ports = Vec::new();
        while let Some(Entry(port)) = entries.next_element()? {
            ports.push(port);
        }
        Ok(Probes::Ports(ports))
    }
}

/// An entry: in full, or the port alone.
struct Entry(ProbePort);

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> de::Visitor<'de> for EntryVisitor {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a probe such as {port: 8080, period: 10s}, or its port")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, entries: A) -> Result<Entry, A::Error> {
        let Written { port, period } = Written::deserialize(MapAccessDeserializer::new(entries))?;
        if port.protocol() != Protocol::Tcp {
            return Err(de::Error::custom(format_args!("{port}: kubelet probes ports of TCP")));
        }
        if period.is_zero() {
            return Err(de::Error::custom("a probe's period is more than 0s"));
        }
        Ok(Entry(ProbePort { port, period }))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Entry, E> {
        let port = ports::from_number(number).map_err(E::custom)?;
        Ok(Entry(ProbePort { port, period: ProbePort::DEFAULT_PERIOD }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<Probes, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    fn probe(port: u16, seconds: u64) -> ProbePort {
        ProbePort { port: port.try_into().unwrap(), period: Duration::from_secs(seconds) }
    }

    #[test]
    fn reads_ports_with_their_periods() {
        assert_eq!(read(json!("auto")), Ok(Probes::Auto));
        assert_eq!(read(json!("off")), Ok(Probes::Off));
        let list = json!([{"port": 8080, "period": "1s"}, {"port": 81}, 82]);
        assert_eq!(read(list), Ok(Probes::Ports(vec![probe(8080, 1), probe(81, 10), probe(82, 10)])));
        assert_eq!(read(json!([])), Ok(Probes::Ports(Vec::new())));
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
        for (value, word) in [
            (json!("on"), "auto, off, or a list"),
            (json!(8080), "auto, off, or a list"),
            (json!([{"period": "1s"}]), "port"),
            (json!([{"port": 0}]), "port 0"),
            (json!([{"port": "443/udp"}]), "ports of TCP"),
            (json!([{"port": 80, "period": "0s"}]), "more than 0s"),
            (json!([{"port": 80, "period": 5}]), "5s"),
            (json!([{"port": 80, "path": "/"}]), "path"),
            (json!([65536]), "65536"),
        ] {
            let message = read(value.clone()).unwrap_err();
            assert!(message.contains(word), "{value}: {message}");
        }
    }
}
