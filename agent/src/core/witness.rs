//! S3: the witness. The namespace's own counter of completed handshakes (`PassiveOpens`) cannot grow by more than the
//! SYNs that the sensor saw on every interface, plus the handshakes that were open when it began to look.
//!
//! A handshake that was completed by a SYN cookie is left out, on the side of the counter: its SYN can have come up to
//! two minutes before (`MAX_SYNCOOKIE_AGE`) and has left no trace in the socket table. So a SYN flood raises no false
//! alarm; what it costs is that its SYNs, which complete nothing, may hide as many others that the sensor missed.

use super::event::{Evidence, SensorState};

/// Compares the sensor with the namespace's counters, from a baseline on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Witness {
    baseline: Option<Baseline>,
}

#[derive(Clone, Copy, Debug)]
struct Baseline {
    passive_opens: u64,
    cookies_received: u64,
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
        let counters = evidence.namespace.as_ref().ok()?;
        let Some(baseline) = self.baseline else {
            self.baseline = baseline(evidence, counters.cookies_received, attempts);
            return None;
        };
        let by_cookie = counters.cookies_received.saturating_sub(baseline.cookies_received);
        let completed = counters.passive_opens.saturating_sub(baseline.passive_opens).saturating_sub(by_cookie);
        let explained = attempts.saturating_sub(baseline.attempts).saturating_add(baseline.handshakes_open);
        completed.checked_sub(explained).filter(|surplus| *surplus > 0)
    }

    /// Forgets the baseline: slack that unfinished attempts have built up would make the witness dull.
    pub(super) fn start_anew(&mut self) {
        self.baseline = None;
    }
}

/// A handshake whose SYN is in `attempts` and whose end is not in `passive_opens_after` was open in between, when the
/// socket table was read; and a cookie that is not in `cookies_received` completes after them all. That order of reading
/// is what makes the sum hold.
fn baseline(evidence: &Evidence, cookies_received: u64, attempts: u64) -> Option<Baseline> {
    let connections = evidence.sockets.as_ref().ok()?.connections.as_ref()?;
    Some(Baseline {
        passive_opens: evidence.passive_opens_after?,
        cookies_received,
        attempts,
        handshakes_open: connections.handshakes.len() as u64,
    })
}
