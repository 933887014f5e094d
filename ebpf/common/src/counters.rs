//! The layout of the maps.

/// Slots in the counter map. The agent hands out `FIRST_PORT_SLOT..SLOTS` to ports.
pub const SLOTS: u32 = 64;

/// Packets that may be SYNs but could not be parsed as far as their port. They count for every listener of the family.
pub const UNATTRIBUTED_SLOT: u8 = 0;

/// What the agent's self-test sends to port 0, which no listener can have.
pub const SELF_TEST_SLOT: u8 = 1;

/// The first slot that a watched port can have.
pub const FIRST_PORT_SLOT: u8 = 2;

/// Classes in a [`Tally`] array; see [`Class`].
pub const CLASSES: usize = 8;

/// Ports in one entry of the port map. Pages keep the map at 64 KiB where one entry a port would take 512 KiB, because
/// the kernel rounds array values up to 8 bytes.
pub const PORTS_PER_PAGE: usize = 64;

/// Entries of the port map.
pub const PORT_PAGES: u32 = 65_536 / 64;

/// The slots of 64 neighbouring ports; [`UNATTRIBUTED_SLOT`] means that the port is not watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PortPage {
    /// Indexed by the low bits of the port.
    pub slots: [u8; PORTS_PER_PAGE],
}

/// What a counted packet is. The discriminant is its index in the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A SYN to a watched port.
    New = 0,
    // 1 to 6 are laid out for: retransmit, refused, probe, ignored, join, stray.
    /// A packet that may be such a SYN, and could not be parsed that far.
    Opaque = 7,
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

/// The counts of one slot and family on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counters {
    /// Indexed by [`Class`].
    pub classes: [Tally; CLASSES],
}

/// The witness: every packet that may open a connection in this namespace, on every interface, whatever its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Witness {
    /// SYNs and packets that may be SYNs, on this CPU, since the program was loaded.
    pub attempts: u64,
}

/// The index of a slot and family in the counter map.
#[inline(always)]
pub const fn counter_index(slot: u8, v6: bool) -> u32 {
    (slot as u32) * 2 + v6 as u32
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

    use super::{Counters, PortPage, Witness};

    // SAFETY: `repr(C)`, only unsigned integers, no padding (8-byte fields or single bytes), every bit pattern is valid.
    unsafe impl aya::Pod for Counters {}
    // SAFETY: as above.
    unsafe impl aya::Pod for PortPage {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Witness {}
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
        }
    }

    #[test]
    fn every_slot_and_family_has_an_index_of_its_own() {
        let mut seen = [false; SLOTS as usize * 2];
        for slot in 0..u8::try_from(SLOTS).unwrap() {
            for v6 in [false, true] {
                assert!(!core::mem::replace(&mut seen[counter_index(slot, v6) as usize], true));
            }
        }
    }

    #[test]
    fn map_values_have_no_padding() {
        assert_eq!(size_of::<Tally>(), 16);
        assert_eq!(size_of::<Counters>(), 16 * CLASSES);
        assert_eq!(size_of::<PortPage>(), PORTS_PER_PAGE);
        assert_eq!(size_of::<Witness>(), 8);
    }
}
