//! Which slot of the counter map belongs to which port.

use std::collections::BTreeMap;

use lastsyn_common::counters::{FIRST_PORT_SLOT, SLOTS};

use crate::core::{clock::Monotonic, listener::Port};

/// The ports that are counted.
#[derive(Debug, Default)]
pub(super) struct Slots {
    ports: BTreeMap<Port, Assigned>,
}

/// A port's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub(super) slot: u8,
    pub(super) since: Monotonic,
}

/// Every slot is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "port {port} is not counted: at most {} ports are, and all are taken; list the ports that matter in listeners.watch",
    SLOTS - u32::from(FIRST_PORT_SLOT)
)]
pub struct SlotsFull {
    /// The port that found none.
    pub port: Port,
}

impl Slots {
    /// Gives `port` a free slot; the one it has, if it has one.
    ///
    /// A slot is never handed on to another port: its counts would have to be told apart.
    pub(super) fn assign(&mut self, port: Port, now: Monotonic) -> Result<Assigned, SlotsFull> {
        if let Some(assigned) = self.ports.get(&port) {
            return Ok(*assigned);
        }
        let slot = u8::try_from(self.ports.len()).ok().and_then(|taken| FIRST_PORT_SLOT.checked_add(taken));
        let slot = slot.filter(|slot| u32::from(*slot) < SLOTS).ok_or(SlotsFull { port })?;
        let assigned = Assigned { slot, since: now };
        self.ports.insert(port, assigned);
        Ok(assigned)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Port, Assigned)> {
        self.ports.iter().map(|(port, assigned)| (*port, *assigned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16) -> Port {
        Port::try_from(number).unwrap()
    }

    #[test]
    fn every_port_has_a_slot_of_its_own_until_none_is_left() {
        let mut slots = Slots::default();
        let now = Monotonic::from_nanos(1);
        for number in 1..=61 {
            assert_eq!(slots.assign(port(number), now).unwrap().slot, u8::try_from(number).unwrap() + 2);
        }
        assert_eq!(slots.assign(port(62), now), Err(SlotsFull { port: port(62) }));
        assert_eq!(slots.assign(port(7), Monotonic::from_nanos(9)).unwrap(), Assigned { slot: 9, since: now });
        assert!(SlotsFull { port: port(62) }.to_string().contains("at most 61 ports"));
    }
}
