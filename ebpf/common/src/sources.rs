//! Who sends the SYNs that count: the layout of the map in which the programs keep it while a drain runs.
//!
//! A source is an IPv4 address, or an IPv6 network of 64 bits, of which one site can have any number of addresses; but an
//! address that the agent knows to be a node's is a source of its own, as nodes share networks.

use crate::counters::Class;

/// How many sources are kept at once, each of one listener and family. When there are more, those from which nothing has come
/// for long give way.
pub const MOST_SOURCES: u32 = 1024;

/// How many IPv6 addresses there can be that are sources of their own.
pub const MOST_WHOLE: u32 = 16_384;

/// A source of one listener's SYNs over one family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Source {
    /// The IPv4 address, or the first 64 bits of the IPv6 address, as they lie in memory.
    pub network: u64,
    /// The last 64 bits of an IPv6 address that is a source of its own; 0 otherwise.
    pub host: u64,
    /// The listener's slot and the family: see [`listener`].
    pub listener: u64,
}

/// What came from a source, as far as it counts as an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Knocks {
    /// How many, on this CPU, since the source was first kept.
    pub count: u64,
    /// `bpf_ktime_get_ns` of the last one on this CPU; 0 if there was none.
    pub last_ns: u64,
    /// The same of the last one that was not sent again: of class [`Class::New`] or [`Class::Refused`].
    pub opened_ns: u64,
}

/// The number of a listener and family in [`Source::listener`].
#[inline(always)]
pub const fn listener(slot: u8, v6: bool) -> u64 {
    slot as u64 | (v6 as u64) << 8
}

/// The slot and the family of a number.
#[expect(clippy::cast_possible_truncation, reason = "the slot is the lowest byte")]
pub const fn slot_and_family(listener: u64) -> (u8, bool) {
    (listener as u8, listener >> 8 & 1 == 1)
}

/// Two words of an address, as they lie in memory, as one.
#[inline(always)]
pub const fn joined(first: u32, second: u32) -> u64 {
    first as u64 | (second as u64) << 32
}

/// The bytes of an address of which [`joined`] made one number.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
pub const fn bytes(joined: u64) -> [u8; 8] {
    let (first, second) = ((joined as u32).to_ne_bytes(), ((joined >> 32) as u32).to_ne_bytes());
    [first[0], first[1], first[2], first[3], second[0], second[1], second[2], second[3]]
}

/// Whether a source is kept for a SYN of this class: the classes that hold a drain and whose source is known.
#[inline(always)]
pub const fn is_kept(class: Class) -> bool {
    matches!(class, Class::New | Class::Retransmit | Class::Refused | Class::Join)
}

/// Whether a SYN of this class begins a connection of a flow that had none.
#[inline(always)]
pub const fn opens(class: Class) -> bool {
    matches!(class, Class::New | Class::Refused)
}

#[cfg(feature = "user")]
mod user {
    #![expect(unsafe_code, reason = "the Pod marker is how aya is told that a map value is plain data")]

    use super::{Knocks, Source};

    // SAFETY: `repr(C)`, only unsigned integers of 8 bytes, so no padding, and every bit pattern is valid.
    unsafe impl aya::Pod for Source {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Knocks {}
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn an_address_comes_back_as_it_went_in() {
        let address: Ipv6Addr = "2001:db8:1:2:3:4:5:6".parse().unwrap();
        let words = address.octets();
        let word = |at: usize| u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]]);
        let (network, host) = (joined(word(0), word(4)), joined(word(8), word(12)));
        assert_eq!([bytes(network), bytes(host)].concat(), words);
        let v4 = Ipv4Addr::new(192, 0, 2, 7);
        assert_eq!(bytes(joined(u32::from_ne_bytes(v4.octets()), 0))[..4], v4.octets());
    }

    #[test]
    fn a_slot_and_a_family_come_back() {
        for slot in [0, 3, 63, 255] {
            for v6 in [false, true] {
                assert_eq!(slot_and_family(listener(slot, v6)), (slot, v6));
            }
        }
    }

    #[test]
    fn keys_and_values_have_no_padding() {
        assert_eq!((size_of::<Source>(), size_of::<Knocks>()), (24, 24));
    }
}
