//! The layout of the maps.

/// Slots in the counter map. The agent hands out `FIRST_PORT_SLOT..SLOTS` to ports.
pub const SLOTS: u32 = 64;

/// Packets that may be SYNs but could not be parsed as far as their port. They count for every listener of the family.
pub const UNATTRIBUTED_SLOT: u8 = 0;

/// What the agent's self-test sends to port 0, which no listener can have.
pub const SELF_TEST_SLOT: u8 = 1;

/// The agent's own port: of each SYN to it is remembered whence it came ([`Sender`]).
pub const OWN_SLOT: u8 = 2;

/// The first slot that a watched port can have.
pub const FIRST_PORT_SLOT: u8 = 3;

/// How many classes there are; see [`Class`].
pub const CLASSES: u32 = 8;

/// Entries of the counter map.
pub const COUNTERS: u32 = SLOTS * 2 * CLASSES;

/// How many networks of one family can be ignored as sources.
pub const MOST_IGNORED: u32 = 256;

/// How many of kubelet's control groups are known at once: a restarted kubelet has a new one.
pub const MOST_KUBELET_GROUPS: u32 = 4;

/// How many probed ports there can be.
pub const MOST_PROBED: u32 = 32;

/// How many pairs of a group and a port are known at once.
pub const MOST_PROBERS: u32 = MOST_KUBELET_GROUPS * MOST_PROBED;

/// How many ports can be told by the pace of their probes, where nothing tells who sent a SYN.
pub const MOST_PACED: u32 = 8;

/// How many marks of a port and family are kept, per CPU.
pub const MARKS_KEPT: u32 = 16;

/// How many lists of marks there are: one for each family.
pub const MARK_LISTS: u32 = MOST_PACED * 2;

/// The group that stands in the map of probers for every sender that cannot be told.
pub const NOBODY: u64 = 0;

/// A SYN that may be a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Mark {
    /// `bpf_ktime_get_ns` (`CLOCK_MONOTONIC`) when it came.
    pub at_ns: u64,
    /// Its source address: equal for equal ones ([`source_v4`], [`source_v6`]).
    pub source: u64,
}

/// Which list of marks is whose, by the number that a port has.
#[inline(always)]
pub const fn mark_list(number: u8, v6: bool) -> u32 {
    (number as u32 % MOST_PACED) * 2 + v6 as u32
}

/// Where a mark is: the marks of a list go round.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 15")]
pub const fn mark_index(list: u32, number: u64) -> u32 {
    list * MARKS_KEPT + (number % MARKS_KEPT as u64) as u32
}

/// What an IPv4 address is known by in a mark.
#[inline(always)]
pub const fn source_v4(address: u32) -> u64 {
    address as u64
}

/// The same for IPv6. Two addresses can be known by the same number; a client gains nothing by it that it could not have by
/// the address itself.
#[inline(always)]
pub const fn source_v6(address: [u32; 4]) -> u64 {
    ((address[0] ^ address[1].rotate_left(7)) as u64) << 32 | (address[2].rotate_left(13) ^ address[3]) as u64
}

/// How many connections to the agent's own port are remembered, per family: only those that processes of this node opened,
/// so that nobody else makes one forgotten.
pub const ASKERS: u32 = 256;

/// The id of the root control group, where everything lives that nobody has put anywhere (`cgroup_setup_root`).
pub const ROOT_GROUP: u64 = 1;

/// Whence a SYN came that a process of this node sent: the control groups of its socket, by the kernel's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sender {
    /// The group itself.
    pub group: u64,
    /// The one right below the root that it is in, or that it is; 0 for the root itself.
    pub top: u64,
}

/// A control group and a port that it probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Prober {
    /// The id of a control group of version 2.
    pub group: u64,
    /// The port; 64 bits wide, so that there is no padding.
    pub port: u64,
}

/// Whether a control group can be told from others by its id. 0 is what the kernel says of a sender that is not on this
/// node.
#[inline(always)]
pub const fn names_one(group: u64) -> bool {
    group > ROOT_GROUP
}

/// Ports in one entry of the port map. Pages keep the map at 64 KiB where one entry a port would take 512 KiB, because
/// the kernel rounds array values up to 8 bytes.
pub const PORTS_PER_PAGE: usize = 8;

/// Entries of the port map.
pub const PORT_PAGES: u32 = 65_536 / 8;

/// The slots of 8 neighbouring ports; [`UNATTRIBUTED_SLOT`] means that the port is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct PortPage {
    /// Indexed by the low bits of the port.
    pub slots: [u8; PORTS_PER_PAGE],
}

impl PortPage {
    /// The slot at a place.
    ///
    /// By shifting, not by address: once a pointer is added to by an amount that varies, the verifier takes no two states
    /// of a loader without `CAP_PERFMON` for alike any more (`explore_alu_limits`), and gives up at the next loop.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the slot is the lowest byte")]
    pub const fn slot(self, place: usize) -> u8 {
        (u64::from_le_bytes(self.slots) >> (place % PORTS_PER_PAGE * 8)) as u8
    }
}

/// What a counted packet is. The discriminant is its place among the counters of a slot and family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A SYN that a listener will take.
    New = 0,
    /// A SYN whose handshake is under way: a retransmission, or a client that begins anew from the same port.
    Retransmit = 1,
    /// A SYN that meets no socket.
    Refused = 2,
    /// A SYN of kubelet's probes.
    Probe = 3,
    /// A SYN from a source that the operator has named.
    Ignored = 4,
    /// A SYN that asks to join an MPTCP connection as a further subflow.
    Join = 5,
    /// A SYN on a flow that has a connection: it opens none.
    Stray = 6,
    /// A packet that may be a SYN, and could not be parsed that far.
    Opaque = 7,
}

impl Class {
    /// Every class that is counted.
    pub const ALL: [Self; 8] =
        [Self::New, Self::Retransmit, Self::Refused, Self::Probe, Self::Ignored, Self::Join, Self::Stray, Self::Opaque];
}

/// How many, and when the last one came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tally {
    /// How many, on this CPU, since the program was loaded.
    pub count: u64,
    /// `bpf_ktime_get_ns` (`CLOCK_MONOTONIC`) of the last one on this CPU; 0 if there was none.
    pub last_ns: u64,
}

/// The witness: every packet that may open a connection in this namespace, on every interface, whatever its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Witness {
    /// SYNs and packets that may be SYNs, on this CPU, since the program was loaded.
    pub attempts: u64,
}

/// The index of a slot, family and class in the counter map. Every class has an entry of its own, so that the class is a
/// part of a key: as a part of an address, the verifier would refuse it to a loader without `CAP_PERFMON`.
#[inline(always)]
pub const fn counter_index(slot: u8, v6: bool, class: Class) -> u32 {
    ((slot as u32) * 2 + v6 as u32) * CLASSES + class as u32
}

/// The entry of a port in the port map, and its place in that entry.
#[inline(always)]
pub const fn port_index(port: u16) -> (u32, usize) {
    let port = port as usize;
    #[expect(clippy::cast_possible_truncation, reason = "at most 1023")]
    ((port / PORTS_PER_PAGE) as u32, port % PORTS_PER_PAGE)
}

#[cfg(feature = "user")]
mod user {
    #![expect(unsafe_code, reason = "the Pod marker is how aya is told that a map value is plain data")]

    use super::{Mark, PortPage, Prober, Sender, Tally, Witness};
    use crate::packet::{Ipv4, Ipv6};

    // SAFETY: `repr(C)`, only unsigned integers, no padding (8-byte fields or single bytes), every bit pattern is valid.
    unsafe impl aya::Pod for Tally {}
    // SAFETY: as above.
    unsafe impl aya::Pod for PortPage {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Witness {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Prober {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Sender {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Mark {}
    // SAFETY: as above, with fields of 4 bytes.
    unsafe impl aya::Pod for Ipv4 {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Ipv6 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_has_a_place_of_its_own() {
        for port in 0..=u16::MAX {
            let (page, place) = port_index(port);
            assert!(page < PORT_PAGES && place < PORTS_PER_PAGE);
            assert_eq!(page as usize * PORTS_PER_PAGE + place, usize::from(port));
            let slots = core::array::from_fn(|other| if other == place { 7 } else { 9 });
            assert_eq!(PortPage { slots }.slot(place), 7);
        }
    }

    #[test]
    fn every_slot_family_and_class_has_an_index_of_its_own() {
        let mut seen = [false; COUNTERS as usize];
        for slot in 0..u8::try_from(SLOTS).unwrap() {
            for v6 in [false, true] {
                for class in Class::ALL {
                    assert!(!core::mem::replace(&mut seen[counter_index(slot, v6, class) as usize], true));
                }
            }
        }
    }

    #[test]
    fn every_mark_has_a_place_of_its_own_until_they_go_round() {
        extern crate std;
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..8 {
            for v6 in [false, true] {
                let list = mark_list(number, v6);
                assert!((0..u64::from(MARKS_KEPT)).all(|mark| seen.insert(mark_index(list, 100 + mark))), "{list}");
                assert_eq!(mark_index(list, 5), mark_index(list, 5 + u64::from(MARKS_KEPT)));
            }
        }
        assert_eq!(seen.last(), Some(&(MARK_LISTS * MARKS_KEPT - 1)));
    }

    #[test]
    fn map_values_have_no_padding() {
        assert_eq!(size_of::<Tally>(), 16);
        assert_eq!(size_of::<PortPage>(), PORTS_PER_PAGE);
        assert_eq!(size_of::<Witness>(), 8);
        assert_eq!((size_of::<Prober>(), size_of::<Sender>(), size_of::<Mark>()), (16, 16, 16));
        assert_eq!((size_of::<crate::packet::Ipv4>(), size_of::<crate::packet::Ipv6>()), (12, 36));
    }
}
