//! Sources as they are told: named, masked, put together, the newest first. Pure.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::{
    cluster::{Place, Places},
    core::{
        clock::{Monotonic, millis},
        cluster::NodeName,
        listener::{Family, Port},
        verdict::{Source, Sources},
    },
    sensor::{Kept, KeptSource},
};

/// What is told of an IPv4 address outside the cluster.
const SHOWN_V4: u32 = 24;
/// The same of IPv6.
const SHOWN_V6: u32 = 48;
/// What is kept of IPv6.
const KEPT_V6: u32 = 64;

/// How many had come from each source at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline(BTreeMap<Key, u64>);

type Key = (Port, Family, IpAddr);

/// What is to be told, and how.
pub(super) struct Telling<'a> {
    pub(super) kept: &'a Kept,
    pub(super) places: &'a Places,
    /// What had come by the withdrawal.
    pub(super) before: Option<&'a Baseline>,
    /// Clients outside the cluster are told without a mask.
    pub(super) full: bool,
}

#[derive(Default)]
struct Sum {
    attempts: u64,
    since_withdrawal: u64,
    last: Monotonic,
}

impl Baseline {
    pub(super) fn of(kept: &Kept) -> Self {
        Self(kept.sources.iter().map(|source| (key(source), source.count)).collect())
    }

    /// A source that was forgotten since, and came back, has fewer.
    fn since(&self, source: &KeptSource) -> u64 {
        let before = self.0.get(&key(source)).copied().unwrap_or_default();
        source.count.checked_sub(before).unwrap_or(source.count)
    }
}

fn key(source: &KeptSource) -> Key {
    (source.port, source.family, source.address)
}

impl Telling<'_> {
    pub(super) fn told(&self, now: Monotonic) -> Sources {
        let mut sums = BTreeMap::<(Port, Family, Option<&NodeName>, String), Sum>::new();
        for source in &self.kept.sources {
            let node = self.node(source).map(|(node, _)| node);
            let sum = sums.entry((source.port, source.family, node, self.from(source))).or_default();
            sum.attempts += source.count;
            sum.since_withdrawal += self.since_withdrawal(source);
            sum.last = sum.last.max(source.last);
        }
        let mut list: Vec<_> = sums.into_iter().collect();
        list.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.last));
        let more = list.len().saturating_sub(Sources::MOST) as u64;
        let told = list.into_iter().take(Sources::MOST).map(|((port, family, node, from), sum)| Source {
            port,
            family,
            from,
            node: node.map(ToString::to_string),
            attempts: sum.attempts,
            since_withdrawal: self.before.map(|_| sum.since_withdrawal),
            last_ago_ms: millis(now.since(sum.last)),
        });
        Sources { list: told.collect(), more, forgotten: self.kept.forgotten }
    }

    /// How many came from each node since the withdrawal, where any did.
    pub(super) fn nodes_since_withdrawal(&self) -> Vec<((NodeName, Family), u64)> {
        let mut nodes = BTreeMap::new();
        for source in &self.kept.sources {
            if let Some((node, _)) = self.node(source) {
                *nodes.entry((node.clone(), source.family)).or_default() += self.since_withdrawal(source);
            }
        }
        nodes.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    fn since_withdrawal(&self, source: &KeptSource) -> u64 {
        self.before.map_or(0, |before| before.since(source))
    }

    /// Whose address it is, or whose pods'; and whether it is a node's own.
    fn node(&self, source: &KeptSource) -> Option<(&NodeName, bool)> {
        let place = match source.address {
            IpAddr::V6(first_bits) if !source.whole => self.places.of_first_64_bits(first_bits),
            address => self.places.of_address(address),
        };
        place.map(|place| match place {
            Place::Node(node) => (node, true),
            Place::PodsOf(node) => (node, false),
        })
    }

    fn from(&self, source: &KeptSource) -> String {
        let inside = self.node(source).is_some();
        match source.address {
            address if source.whole && (inside || self.full) => address.to_string(),
            IpAddr::V4(v4) => {
                format!("{}/{SHOWN_V4}", Ipv4Addr::from_bits(v4.to_bits() & (u32::MAX << (32 - SHOWN_V4))))
            }
            IpAddr::V6(v6) => {
                let length = if inside || self.full { KEPT_V6 } else { SHOWN_V6 };
                format!("{}/{length}", Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << (128 - length))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::convert::NodeTarget,
        core::{cluster::Node, confirm::OperatingSystem},
    };

    fn places() -> Places {
        Places::of(&[NodeTarget {
            node: Node { name: NodeName("b".to_owned()), system: OperatingSystem::Linux },
            addresses: vec!["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()],
            pod_networks: vec!["10.244.1.0/24".parse().unwrap(), "fd00:244:1::/64".parse().unwrap()],
        }])
    }

    fn source(address: &str, count: u64, last: u64) -> KeptSource {
        let address: IpAddr = address.parse().unwrap();
        KeptSource {
            port: Port::try_from(80).unwrap(),
            family: if address.is_ipv4() { Family::V4 } else { Family::V6 },
            address,
            whole: address.is_ipv4() || address == "fd00::2".parse::<IpAddr>().unwrap(),
            count,
            last: Monotonic::from_nanos(last),
            opened: None,
        }
    }

    fn told(sources: Vec<KeptSource>, before: Option<&Baseline>, full: bool) -> Sources {
        let kept = Kept { sources, forgotten: 3 };
        Telling { kept: &kept, places: &places(), before, full }.told(Monotonic::from_nanos(1_000_000_000))
    }

    fn from_and_node(sources: &Sources) -> Vec<(String, Option<&str>)> {
        sources.list.iter().map(|source| (source.from.clone(), source.node.as_deref())).collect()
    }

    #[test]
    fn those_inside_are_named_and_those_outside_masked() {
        let all = || {
            let addresses = [
                "10.0.0.2",
                "10.244.1.7",
                "fd00::2",
                "fd00:244:1::",
                "203.0.113.7",
                "203.0.113.9",
                "2001:db8:1:2::",
                "2001:db8:1:3::",
            ];
            (0..).zip(addresses).map(|(last, address)| source(address, 2, 100 - last)).collect()
        };
        let masked = told(all(), None, false);
        let b = Some("b");
        assert_eq!(
            from_and_node(&masked),
            [
                ("10.0.0.2", b),
                ("10.244.1.7", b),
                ("fd00::2", b),
                ("fd00:244:1::/64", b),
                ("203.0.113.0/24", None),
                ("2001:db8:1::/48", None)
            ]
            .map(|(from, node)| (from.to_owned(), node))
        );
        assert_eq!((masked.list[4].attempts, masked.list[5].attempts), (4, 4), "put together");
        assert_eq!(masked.forgotten, 3);
        let full = told(all(), None, true);
        let outside: Vec<_> = full.list[4..].iter().map(|source| source.from.as_str()).collect();
        assert_eq!(outside, ["203.0.113.7", "203.0.113.9", "2001:db8:1:2::/64", "2001:db8:1:3::/64"]);
    }

    #[test]
    fn the_newest_come_first_and_the_others_are_a_number() {
        let many: Vec<_> = (0_u64..30).map(|at| source(&format!("10.244.1.{at}"), 1, at * 1_000_000)).collect();
        let told = told(many, None, false);
        assert_eq!((told.list.len(), told.more), (20, 10));
        assert_eq!((told.list[0].from.as_str(), told.list[0].last_ago_ms), ("10.244.1.29", 971));
        assert_eq!(told.list[0].since_withdrawal, None, "it is not withdrawn");
    }

    #[test]
    fn what_came_before_the_withdrawal_is_not_in_what_came_since() {
        let early = Kept { sources: vec![source("10.0.0.2", 5, 1), source("10.244.1.7", 9, 1)], forgotten: 0 };
        let before = Baseline::of(&early);
        let late = vec![source("10.0.0.2", 19, 3), source("10.244.1.7", 2, 2), source("10.244.1.8", 1, 1)];
        let since = |told: &Sources| told.list.iter().map(|source| source.since_withdrawal).collect::<Vec<_>>();
        let told = told(late.clone(), Some(&before), false);
        assert_eq!(since(&told), [Some(14), Some(2), Some(1)], "the second was forgotten, and came back");
        let kept = Kept { sources: late, forgotten: 0 };
        let telling = Telling { kept: &kept, places: &places(), before: Some(&before), full: false };
        assert_eq!(telling.nodes_since_withdrawal(), [((NodeName("b".to_owned()), Family::V4), 17)]);
    }
}
