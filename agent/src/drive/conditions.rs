//! The conditions of the drain under way, each with what it waits for, in words: for the status. It asks the core for what it shows
//! and decides nothing; where the core does not show it, it says less.

use std::{cmp::Reverse, time::Duration};

use crate::{
    config::format_duration,
    core::{
        clock::{Monotonic, millis},
        drain::Core,
        event::{Evidence, SensorState},
        settings::Settings,
        verdict::Condition,
        view::Span,
    },
    report::Recorder,
    server::status::ConditionStatus,
};

/// What is looked at.
pub(super) struct Conditions<'a> {
    pub(super) core: &'a Core,
    pub(super) settings: &'a Settings,
    pub(super) recorder: &'a Recorder,
    pub(super) span: Span,
    pub(super) now: Monotonic,
}

/// What a condition waits for, and when it can be met at the earliest, where that is known.
type Wait = (String, Option<Monotonic>);

impl Conditions<'_> {
    /// All, in the order of the rules.
    pub(super) fn told(&self, holding: &[Condition]) -> Vec<ConditionStatus> {
        Condition::ALL.map(|condition| self.one(condition, holding.contains(&condition))).into()
    }

    fn one(&self, condition: Condition, holds: bool) -> ConditionStatus {
        let standing = self.recorder.standing(condition);
        let since = if standing.holds == holds { standing.since_ms } else { millis(self.elapsed()) };
        let (waits_for, met_from) = match condition {
            Condition::Floor => self.floor(),
            Condition::Quiet => self.quiet(holds),
            Condition::Retry => self.retry(holds),
            Condition::Handshakes => self.handshakes(),
            Condition::Connections => self.connections(),
            Condition::Routing => self.routing(holds),
            Condition::LoadBalancer => self.load_balancer(),
        };
        ConditionStatus {
            rule: rule(condition).to_owned(),
            condition,
            holds,
            since_ms: millis(self.elapsed()).saturating_sub(since),
            left_ms: met_from.filter(|_| holds).map(|from| millis(from.since(self.now))),
            waits_for,
        }
    }

    fn elapsed(&self) -> Duration {
        self.now.since(self.span.started)
    }

    fn floor(&self) -> Wait {
        let floor = self.settings.min_wait;
        (format!("{} since the hook's call", format_duration(floor)), Some(self.span.started + floor))
    }

    /// The listener and family that had an attempt last.
    fn quiet(&self, holds: bool) -> Wait {
        let period = format_duration(self.settings.quiet_period);
        if let Some(SensorState::Unproven { .. }) = self.core.evidence().map(|evidence| &evidence.sensor)
            && holds
        {
            return (format!("{period} without a sign of one: the sensor may miss SYNs"), None);
        }
        let listeners = self.core.listeners();
        let attempts = listeners.iter().flat_map(|listener| {
            listener
                .families
                .iter()
                .filter_map(|counts| Some((Reverse(counts.last_attempt_ago_ms?), listener.port, counts.family)))
        });
        let taken_at = self.core.evidence().map_or(self.now, |evidence| evidence.taken_at);
        let proven = match self.core.evidence().map(|evidence| &evidence.sensor) {
            Some(SensorState::Proven { since, .. }) => *since,
            _ => self.span.started,
        };
        let begun = self.span.started.max(proven);
        let newest = attempts.max_by_key(|(ago, ..)| *ago);
        let newest = newest.map(|(Reverse(ago), port, family)| (taken_at - Duration::from_millis(ago), port, family));
        match newest {
            Some((at, port, family)) if at > begun => {
                (format!("{period} of quiet; last: {port} over {family}"), Some(at + self.settings.quiet_period))
            }
            _ => (format!("{period} of quiet"), Some(begun + self.settings.quiet_period)),
        }
    }

    fn retry(&self, holds: bool) -> Wait {
        let wait = self.settings.retry_wait;
        let words = format!("{} after a dropped SYN", format_duration(wait));
        (words, self.recorder.dropped().filter(|_| holds).map(|dropped| dropped + wait))
    }

    fn handshakes(&self) -> Wait {
        let Some(sockets) = self.core.evidence().and_then(|evidence| evidence.sockets.as_ref().ok()) else {
            return ("the socket table, which could not be read".to_owned(), None);
        };
        let watched = self.core.totals();
        let is_watched = |port| watched.iter().any(|listener| listener.port == port);
        let queued: u64 = sockets.listeners.iter().filter(|(port, _)| is_watched(**port)).map(|(_, queue)| queue).sum();
        let under_way = sockets
            .connections
            .as_ref()
            .map(|connections| connections.handshakes.values().filter(|port| is_watched(**port)).count().to_string());
        let under_way = under_way.map_or_else(String::new, |count| format!(", {count} under way"));
        let grace = format_duration(self.settings.handshake_grace);
        (format!("{queued} queued{under_way}; none, or older than {grace}"), None)
    }

    fn connections(&self) -> Wait {
        let Some(most) = self.settings.exit_at_connections else {
            return ("nothing (exitAtConnections: null)".to_owned(), None);
        };
        let established = self.core.evidence().and_then(established);
        let now = established.map_or_else(String::new, |count| format!("; there were {count}"));
        (format!("at most {most} established connections{now}"), None)
    }

    fn routing(&self, holds: bool) -> Wait {
        if self.settings.routing.is_none() {
            return ("nothing: routing is not watched".to_owned(), None);
        }
        let routed: Vec<&str> = self.recorder.routed().collect();
        let nodes = self.core.node_tally();
        let words = match routed.as_slice() {
            [] if nodes.pending > 0 => {
                format!("{} of {} nodes to route elsewhere", nodes.pending, nodes.total())
            }
            [] if !holds => "every node to route elsewhere".to_owned(),
            [] => "the API server: its lists, or the consistent read of the end".to_owned(),
            [one] => format!("{one} to lead elsewhere"),
            [one, more @ ..] => format!("{one} and {} more to lead elsewhere", more.len()),
        };
        (words, None)
    }

    fn load_balancer(&self) -> Wait {
        let Some(routing) = &self.settings.routing else {
            return ("nothing: routing is not watched".to_owned(), None);
        };
        let window = routing.load_balancer_window;
        if window.is_zero() {
            return ("nothing (loadBalancer.window: 0s)".to_owned(), None);
        }
        let words = format!("{} after load balancers can see that this node has no endpoint", format_duration(window));
        (words, self.recorder.withdrawn().map(|withdrawn| withdrawn + window))
    }
}

fn established(evidence: &Evidence) -> Option<u64> {
    let connections = evidence.sockets.as_ref().ok()?.connections.as_ref()?;
    Some(connections.established.as_ref()?.values().sum())
}

/// The rule's name.
fn rule(condition: Condition) -> &'static str {
    match condition {
        Condition::Floor => "E1",
        Condition::Quiet => "E2",
        Condition::Retry => "E2a",
        Condition::Handshakes => "E3",
        Condition::Connections => "E4",
        Condition::Routing => "E5",
        Condition::LoadBalancer => "E6",
    }
}
