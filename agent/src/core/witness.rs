//! S3: the witness. The namespace's own counter of completed handshakes (`PassiveOpens`) cannot grow by more than the
//! SYNs that the sensor saw on every interface, plus the handshakes that were open when it began to look.

use super::event::{Evidence, SensorState};

/// Compares the sensor with the namespace's counters, from a baseline on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Witness {
    baseline: Option<Baseline>,
}

#[derive(Clone, Copy, Debug)]
struct Baseline {
    passive_opens: u64,
    attempts: u64,
    handshakes_open: u64,
}

impl Witness {
    /// Takes the baseline where there is none, and then tells by how many the handshakes exceed the SYNs.
    pub(super) fn surplus(&mut self, evidence: &Evidence) -> Option<u64> {
        let (SensorState::Proven { .. }, Some(attempts)) = (&evidence.sensor, evidence.attempts_anywhere) else {
            self.baseline = None; // the sensor has missed something anyway; compare anew once it is in place
            return None;
        };
        let Some(baseline) = self.baseline else {
            // A handshake whose SYN is in `attempts` and whose end is not in this `passive_opens` was open in between,
            // when the socket table was read. That order of reading is what makes the sum hold.
            let connections = evidence.sockets.as_ref().ok().and_then(|sockets| sockets.connections.as_ref());
            self.baseline = connections.map(|connections| Baseline {
                passive_opens: evidence.passive_opens_after,
                attempts,
                handshakes_open: connections.handshakes.len() as u64,
            });
            return None;
        };
        let completed = evidence.namespace.passive_opens.saturating_sub(baseline.passive_opens);
        let explained = attempts.saturating_sub(baseline.attempts).saturating_add(baseline.handshakes_open);
        completed.checked_sub(explained).filter(|surplus| *surplus > 0)
    }

    /// Forgets the baseline: slack that unfinished attempts have built up would make the witness dull.
    pub(super) fn start_anew(&mut self) {
        self.baseline = None;
    }
}
