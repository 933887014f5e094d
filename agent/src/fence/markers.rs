//! The values of the nodes as EndpointSlices, and back. Pure.
//!
//! A node's value is the number of its ready endpoints, all in one slice: so one write changes it as a whole, whatever is
//! done to other slices. No endpoint can carry traffic of anyone: nobody has their addresses, which are of ranges that are
//! not routed, and both policies of their Service are `Local`.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointSlice};

use super::generation::{Generation, VALUES};
use crate::core::{cluster::NodeName, listener::Family};

/// How many nodes a slice has: with all their endpoints no more than the 1000 that a slice may have (`maxEndpoints` of
/// `pkg/apis/discovery/validation`).
pub const NODES_PER_SLICE: u32 = 150;

/// The first address of IPv4: the range for benchmarks (RFC 2544, RFC 6890), which no router forwards. Those for
/// documentation are too small for 200 nodes.
const FIRST_V4: u32 = u32::from_be_bytes([198, 18, 0, 0]);

/// How many nodes have addresses in that range, of 131072 addresses.
const MOST_NODES: u32 = (1 << 17) / PLACES;

/// The first address of IPv6: documentation (RFC 3849).
const FIRST_V6: u128 = 0x2001_0db8_6c73_0000_0000_0000_0000_0000;

/// Addresses of one node.
const PLACES: u32 = 8;

/// Where a node's endpoints are: a number that it keeps.
pub type Place = u32;

/// The nodes of one family, their places and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markers(BTreeMap<NodeName, (Place, Generation)>);

/// Slices that no fence has written so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{slice} is not as a fence writes it: {why}; somebody else has changed it")]
pub struct Foreign {
    /// Which slice.
    pub slice: String,
    /// What is wrong.
    pub why: String,
}

impl Markers {
    /// What slices say.
    ///
    /// # Errors
    /// If a fence has not written them so.
    pub fn read<'a>(family: Family, slices: impl IntoIterator<Item = &'a EndpointSlice>) -> Result<Self, Foreign> {
        let mut all = BTreeMap::new();
        let mut places = BTreeSet::new();
        for slice in slices {
            let name = slice.metadata.name.clone().unwrap_or_default();
            let foreign = |why: String| Foreign { slice: name.clone(), why };
            let mut addresses: BTreeMap<&str, BTreeSet<IpAddr>> = BTreeMap::new();
            for endpoint in &slice.endpoints {
                let node =
                    endpoint.node_name.as_deref().ok_or_else(|| foreign("an endpoint has no node".to_owned()))?;
                let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
                let [address] = endpoint.addresses.as_slice() else {
                    return Err(foreign(format!("an endpoint of {node} has several addresses or none")));
                };
                let address = address.parse().map_err(|_no_address| foreign(format!("{address:?} is no address")))?;
                if ready != Some(true) || !addresses.entry(node).or_default().insert(address) {
                    return Err(foreign(format!("an endpoint of {node} is not ready, or there twice")));
                }
            }
            for (node, addresses) in addresses {
                let value = Generation::of(addresses.len() as u64)
                    .ok_or_else(|| foreign(format!("{node} has {} endpoints", addresses.len())))?;
                let place = addresses.first().and_then(|first| place_of(family, *first));
                let place = place.filter(|place| endpoints_of(family, *place, value).eq(addresses.iter().copied()));
                let place =
                    place.ok_or_else(|| foreign(format!("the addresses of {node} are not those of a place")))?;
                if !places.insert(place) || all.insert(NodeName(node.to_owned()), (place, value)).is_some() {
                    return Err(foreign(format!("{node} or its place is there twice")));
                }
            }
        }
        Ok(Self(all))
    }

    /// The nodes' values.
    pub fn values(&self) -> BTreeMap<NodeName, Generation> {
        self.0.iter().map(|(name, (_, value))| (name.clone(), *value)).collect()
    }

    /// Sets values; nodes that are new get a place. Returns the slices (by number) that change. Nodes that are not `alive`
    /// give up their places where there are too many.
    pub fn set(&mut self, values: &BTreeMap<NodeName, Generation>, alive: &BTreeSet<NodeName>) -> BTreeSet<u32> {
        let mut changed = BTreeSet::new();
        let new = values.keys().filter(|name| !self.0.contains_key(*name)).count();
        // One that comes back is to go on with its value: so its place is kept for as long as there is room.
        if self.0.len() + new > (alive.len() * 2).max(NODES_PER_SLICE as usize) {
            self.0.retain(|name, (place, _)| {
                let keep = alive.contains(name);
                if !keep {
                    changed.insert(*place / NODES_PER_SLICE);
                }
                keep
            });
        }
        let mut taken: BTreeSet<Place> = self.0.values().map(|(place, _)| *place).collect();
        let mut free = 0;
        for (name, value) in values {
            let place = self.0.get(name).map_or_else(
                || {
                    while !taken.insert(free) {
                        free += 1;
                    }
                    free
                },
                |(place, _)| *place,
            );
            if place < MOST_NODES {
                self.0.insert(name.clone(), (place, *value));
                changed.insert(place / NODES_PER_SLICE);
            }
        }
        changed
    }

    /// The endpoints of one slice, by its number.
    pub fn endpoints(&self, family: Family, slice: u32) -> Vec<Endpoint> {
        let of_slice = self.0.iter().filter(|(_, (place, _))| place / NODES_PER_SLICE == slice);
        of_slice
            .flat_map(|(name, (place, value))| {
                endpoints_of(family, *place, *value).map(|address| Endpoint {
                    addresses: vec![address.to_string()],
                    conditions: Some(EndpointConditions { ready: Some(true), ..EndpointConditions::default() }),
                    node_name: Some(name.0.clone()),
                    ..Endpoint::default()
                })
            })
            .collect()
    }
}

/// The addresses that show a value, in their order.
fn endpoints_of(family: Family, place: Place, value: Generation) -> impl Iterator<Item = IpAddr> {
    let first = place * PLACES + 1;
    (0..u32::from(value.endpoints())).map(move |offset| match family {
        Family::V4 => Ipv4Addr::from(FIRST_V4 + first + offset).into(),
        Family::V6 => Ipv6Addr::from(FIRST_V6 + u128::from(first + offset)).into(),
    })
}

/// The place whose first address this is.
fn place_of(family: Family, address: IpAddr) -> Option<Place> {
    let number = match (family, address) {
        (Family::V4, IpAddr::V4(address)) => u32::from(address).checked_sub(FIRST_V4)?,
        (Family::V6, IpAddr::V6(address)) => u32::try_from(u128::from(address).checked_sub(FIRST_V6)?).ok()?,
        _ => return None,
    };
    (number % PLACES == 1).then_some(number / PLACES).filter(|place| *place < MOST_NODES)
}

const _: () = assert!(NODES_PER_SLICE * VALUES as u32 <= 1000, "a slice has at most 1000 endpoints");
const _: () = assert!(PLACES > VALUES as u32, "a place has an address for each endpoint");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slices(markers: &Markers, family: Family) -> Vec<EndpointSlice> {
        let of = |number: u32| EndpointSlice {
            address_type: family.name().to_owned(),
            endpoints: markers.endpoints(family, number),
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                name: Some(format!("fence-{number}")),
                ..Default::default()
            },
            ..EndpointSlice::default()
        };
        (0..4).map(of).filter(|slice| !slice.endpoints.is_empty()).collect()
    }

    fn node(number: u16) -> NodeName {
        NodeName(format!("node-{number}"))
    }

    fn generation(value: u8) -> Generation {
        Generation::of(value.into()).expect("a value")
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            steps in proptest::collection::vec(
                proptest::collection::btree_map(0_u16..400, 1_u8..=VALUES, 0..60), 1..8),
            v4 in any::<bool>(),
        ) {
            let family = if v4 { Family::V4 } else { Family::V6 };
            let mut markers = Markers::default();
            let mut expected = BTreeMap::new();
            for step in steps {
                let values: BTreeMap<_, _> = step.iter().map(|(name, value)| (node(*name), generation(*value))).collect();
                expected.extend(values.clone());
                let before = slices(&markers, family);
                let alive = expected.keys().cloned().collect();
                let changed = markers.set(&values, &alive);
                let after = slices(&markers, family);
                let read = Markers::read(family, &after).expect("own slices");
                prop_assert_eq!(read.values(), expected.clone());
                prop_assert_eq!(&read, &markers);
                for slice in after.iter().filter(|slice| !before.contains(slice)) {
                    let number: u32 = slice.metadata.name.as_ref().and_then(|name| name.rsplit('-').next()?.parse().ok()).expect("a number");
                    prop_assert!(changed.contains(&number), "slice {} changed unsaid", number);
                    prop_assert!(slice.endpoints.len() <= 1000);
                }
            }
        }
    }

    #[test]
    fn one_that_has_gone_keeps_its_place_while_there_is_room() {
        let mut markers = Markers::default();
        let all: BTreeMap<_, _> = (0..100).map(|number| (node(number), generation(2))).collect();
        markers.set(&all, &all.keys().cloned().collect());
        let alive: BTreeSet<_> = (50..100).map(node).collect();
        markers.set(&BTreeMap::from([(node(100), generation(1))]), &alive);
        assert_eq!(markers.values().len(), 101);
        let more: BTreeMap<_, _> = (200..260).map(|number| (node(number), generation(1))).collect();
        let changed = markers.set(&more, &alive);
        assert_eq!(markers.values().len(), 110);
        assert!(changed.contains(&0));
    }

    #[test]
    fn what_somebody_else_has_changed_is_known() {
        type Change = fn(&mut EndpointSlice);
        let mut markers = Markers::default();
        let values = BTreeMap::from([(node(1), generation(2)), (node(2), generation(3))]);
        markers.set(&values, &values.keys().cloned().collect());
        let changes: [(&str, Change); 6] = [
            ("not ready", |slice| {
                slice.endpoints[0].conditions.as_mut().expect("conditions").ready = None;
            }),
            ("one missing in front", |slice| drop(slice.endpoints.remove(0))),
            ("an address of its own", |slice| slice.endpoints[1].addresses = vec!["10.0.0.1".to_owned()]),
            ("no node", |slice| slice.endpoints[1].node_name = None),
            ("another node", |slice| slice.endpoints[1].node_name = Some("else".to_owned())),
            ("twice", |slice| {
                let copy = slice.endpoints[0].clone();
                slice.endpoints.push(copy);
            }),
        ];
        for (what, change) in changes {
            let mut written = slices(&markers, Family::V4);
            change(&mut written[0]);
            assert!(Markers::read(Family::V4, &written).is_err(), "{what}");
        }
        assert!(Markers::read(Family::V6, &slices(&markers, Family::V4)).is_err(), "the other family");
    }
}
