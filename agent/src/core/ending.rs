//! The one way to an end: every condition is looked at here, and nothing else ends a drain but the bound (S1).

use super::{
    clock::Monotonic,
    event::Evidence,
    handshake::{self, Handshakes},
    hold::Hold,
    quiet::{self, Since},
    retry::Retry,
    settings::Settings,
    verdict::Condition,
    watched::Watched,
};

/// What each condition says, in the order of [`Condition::ALL`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Holds([(Condition, Hold); Condition::ALL.len()]);

/// What is to be done after a look at the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All are met.
    End,
    /// All that are known are met: the connections are to be read.
    ReadConnections,
    /// Not before this time.
    Wait(Monotonic),
    /// Not before this time, and what holds may change at any moment: look again before long.
    WaitAndLook(Monotonic),
}

/// Everything that the conditions look at.
pub(super) struct Look<'a> {
    pub(super) settings: &'a Settings,
    pub(super) evidence: &'a Evidence,
    pub(super) watched: &'a Watched,
    pub(super) retry: Retry,
    pub(super) handshakes: &'a Handshakes,
    pub(super) since: Since,
}

impl Holds {
    /// Asks every condition.
    pub(super) fn of(look: &Look<'_>) -> Self {
        let Look { settings, evidence, watched, retry, handshakes, since } = look;
        Self(Condition::ALL.map(|condition| {
            let hold = match condition {
                Condition::Floor => floor(*since, settings, evidence),
                Condition::Quiet => quiet::hold(watched, evidence, *since, settings),
                Condition::Retry => retry.hold(evidence.taken_at),
                Condition::Handshakes => handshakes.hold(watched, evidence, settings.handshake_grace),
                Condition::Connections => handshake::connections_hold(watched, evidence, settings.exit_at_connections),
            };
            (condition, hold)
        }))
    }

    /// What is to be done.
    pub(super) fn next(&self) -> Next {
        let mut latest: Option<Monotonic> = None;
        let mut open = false;
        let mut unread = false;
        for (_, hold) in &self.0 {
            match hold {
                Hold::Met => {}
                Hold::Until(time) => latest = latest.max(Some(*time)),
                Hold::Open => open = true,
                Hold::Unread => unread = true,
            }
        }
        match (latest, open, unread) {
            (Some(time), false, _) => Next::Wait(time),
            (Some(time), true, _) => Next::WaitAndLook(time),
            (None, true, _) => Next::WaitAndLook(Monotonic::from_nanos(0)),
            (None, false, true) => Next::ReadConnections,
            (None, false, false) => Next::End,
        }
    }

    /// The conditions that are known to hold the end, each with the time until which it is known to.
    pub(super) fn held(&self, taken_at: Monotonic) -> impl Iterator<Item = (Condition, Monotonic)> {
        self.0.into_iter().filter_map(move |(condition, hold)| match hold {
            Hold::Until(time) => Some((condition, time)),
            Hold::Open => Some((condition, taken_at)),
            Hold::Met | Hold::Unread => None,
        })
    }
}

/// E1: never before `minWait`.
fn floor(since: Since, settings: &Settings, evidence: &Evidence) -> Hold {
    Hold::until(since.drain_started + settings.min_wait, evidence.taken_at)
}
