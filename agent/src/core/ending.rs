//! The one way to an end: every condition is looked at here, and nothing else ends a drain but the bound (S1).

use super::{
    clock::Monotonic,
    drain::Core,
    event::Evidence,
    handshake::{self, Handshakes},
    hold::Hold,
    quiet::{self, Since},
    report,
    retry::Retry,
    settings::Settings,
    verdict::{Condition, Reason},
    watched::Watched,
    withdrawal::Withdrawal,
};

impl Core {
    /// Why the drain under way is to end now, if it is. Nothing else ends a drain: `next` is what all conditions say
    /// together (E1 to E6), and the rest is the bound (S1) and a pod that is not terminating (S5).
    pub(super) fn reason_to_end(&self, next: Option<Next>, now: Monotonic) -> Option<Reason> {
        let drain = self.drain.as_ref()?;
        if now >= drain.bound {
            return Some(Reason::Bound);
        }
        if drain.termination.is_refuted() && now >= drain.started + self.settings.min_wait {
            return Some(Reason::NotTerminating);
        }
        // A reading that is under way was asked for because this evidence does not do.
        (next == Some(Next::End) && self.reading.is_none()).then(|| self.claim()).flatten()
    }

    /// What an end by the conditions may be called.
    fn claim(&self) -> Option<Reason> {
        let (drain, evidence) = (self.drain.as_ref()?, self.evidence.as_ref()?);
        let seen_all = report::unseen(drain, evidence, &self.watched).is_empty();
        let claim = drain.withdrawal.as_ref().map(Withdrawal::told);
        Some(match claim {
            _ if !seen_all => Reason::Unverified,
            None => Reason::Quiet,
            Some(_) if drain.termination.unknown().is_some() => Reason::Unverified,
            Some(claim) => claim.reason(),
        })
    }
}

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
    /// Not all can be met before this time.
    Wait {
        until: Monotonic,
        /// Of the others, some need the connections to be read.
        unread: bool,
    },
    /// What is awaited comes by itself.
    Await,
    /// What holds may change at any moment, and does at this time if nothing new comes: look again before long.
    Look(Option<Monotonic>),
}

/// Everything that the conditions look at.
pub(super) struct Look<'a> {
    pub(super) settings: &'a Settings,
    pub(super) evidence: &'a Evidence,
    pub(super) watched: &'a Watched,
    pub(super) retry: Retry,
    pub(super) handshakes: &'a Handshakes,
    pub(super) started: Monotonic,
    pub(super) since: Since,
    pub(super) withdrawal: Option<&'a Withdrawal>,
}

impl Holds {
    /// Asks every condition.
    pub(super) fn of(look: &Look<'_>) -> Self {
        let Look { settings, evidence, watched, retry, handshakes, started, since, withdrawal } = look;
        Self(Condition::ALL.map(|condition| {
            let hold = match condition {
                Condition::Floor => Hold::until(*started + settings.min_wait, evidence.taken_at),
                Condition::Quiet => quiet::hold(watched, evidence, *since, settings),
                Condition::Retry => retry.hold(evidence),
                Condition::Handshakes => handshakes.hold(watched, evidence, !since.untrusted, settings.handshake_grace),
                Condition::Connections => handshake::connections_hold(watched, evidence, settings.exit_at_connections),
                Condition::Routing => withdrawal.map_or(Hold::Met, |withdrawal| withdrawal.hold(evidence.taken_at)),
                Condition::LoadBalancer => {
                    withdrawal.map_or(Hold::Met, |withdrawal| withdrawal.load_balancer_hold(evidence.taken_at))
                }
            };
            (condition, hold)
        }))
    }

    /// What is to be done. `known` is what is known with the readings before ([`or`](Self::or)).
    pub(super) fn next(&self, known: &Self) -> Next {
        let (mut not_before, mut by, mut open, mut awaited, mut unread) = (None, None, false, false, false);
        let (mut unasked, mut was_open) = (false, false);
        for ((_, hold), (_, known)) in self.0.iter().zip(&known.0) {
            match hold {
                Hold::Met => {}
                Hold::Until(time) => not_before = not_before.max(Some(*time)),
                Hold::AtMost(time) => by = by.max(Some(*time)),
                Hold::Open => open = true,
                Hold::Awaited => awaited = true,
                Hold::Unasked => unasked = true,
                Hold::Unread => {
                    unread = true;
                    was_open |= *known == Hold::Open;
                }
            }
        }
        if awaited && not_before.is_none() {
            return Next::Await;
        }
        if unasked && not_before.is_none() {
            // It is asked about once the others are met, and one that may be met at any time is not seen to be by waiting.
            return if open || was_open { Next::Look(None) } else { Next::Await };
        }
        match (not_before, open, by, unread) {
            (Some(until), ..) => Next::Wait { until, unread },
            (None, true, ..) => Next::Look(None),
            (None, false, Some(time), _) => Next::Look(Some(time)),
            (None, false, None, true) => Next::ReadConnections,
            (None, false, None, false) => Next::End,
        }
    }

    /// What is known at `now`: what this reading does not tell, the one before it told.
    pub(super) fn or(self, before: Option<Self>, now: Monotonic) -> Self {
        let Some(Self(mut before)) = before else {
            return self;
        };
        for ((_, before), (_, hold)) in before.iter_mut().zip(self.0) {
            *before = hold.or(*before, now);
        }
        Self(before)
    }

    /// The conditions that are known to hold the end.
    pub(super) fn holding(&self) -> impl Iterator<Item = Condition> {
        self.0.into_iter().filter(|(_, hold)| hold.holds()).map(|(condition, _)| condition)
    }

    /// The conditions that are known to hold the end, each with the time until which it is known to: by a reading that
    /// was taken at `taken_at`, and for what comes by itself at `now`, the moment that ends it included.
    pub(super) fn held(
        &self,
        before: Option<Self>,
        taken_at: Monotonic,
        now: Monotonic,
    ) -> impl Iterator<Item = (Condition, Monotonic)> {
        let before = before.map_or([Hold::Met; Condition::ALL.len()], |before| before.0.map(|(_, hold)| hold));
        self.0.into_iter().zip(before).filter_map(move |((condition, hold), before)| match hold {
            Hold::Until(time) => Some((condition, time)),
            Hold::AtMost(_) | Hold::Open => Some((condition, taken_at)),
            Hold::Awaited => Some((condition, now)),
            Hold::Met | Hold::Unasked | Hold::Unread => (before == Hold::Awaited).then_some((condition, now)),
        })
    }

    /// From when on all conditions but this one may be met, by what is known; `None` if nobody knows.
    pub(super) fn met_from_but_for(&self, condition: Condition) -> Option<Monotonic> {
        let mut from = Monotonic::default();
        for (_, hold) in self.0.iter().filter(|(of, _)| *of != condition) {
            match hold {
                Hold::Met | Hold::Unasked | Hold::Unread => {}
                Hold::Until(time) | Hold::AtMost(time) => from = from.max(*time),
                Hold::Open | Hold::Awaited => return None,
            }
        }
        Some(from)
    }
}
