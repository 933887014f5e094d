//! Verdicts and durations in words, for people.

mod lacks;

use std::fmt::Write;

pub use lacks::lacks;

use crate::core::{
    class::Class,
    verdict::{Condition, FamilyCounts, HeldBy, Late, Listener, NotObserved, Reason, Source, Sources, Verdict},
};

/// A verdict as one sentence: why the drain ended and after how long, what held it, what reached the pod, and what was
/// not observed.
pub fn verdict(verdict: &Verdict) -> String {
    let after = seconds(verdict.duration_ms);
    let mut parts = vec![match verdict.reason {
        Reason::RoutedAway => format!("routed away after {after}: every node has shown that it routes elsewhere"),
        Reason::Synced => {
            format!("synced after {after}: every node has had the withdrawal, within the bounds it assumes")
        }
        Reason::Quiet => format!("quiet after {after}: new connections have stopped on every watched listener"),
        Reason::Unverified => format!("unverified after {after}: quiet as far as could be seen"),
        Reason::NotTerminating => format!("not terminating, known after {after}: only a container is restarted"),
        Reason::Bound if verdict.holding.is_empty() => format!("bound reached after {after}"),
        Reason::Bound => format!("bound reached after {after}, still held by {}", holding(&verdict.holding)),
    }];
    if let Some(held) = held_by(&verdict.held_by) {
        parts.push(format!("held by {held}"));
    }
    parts.push(match verdict.listeners.as_slice() {
        [] => "no listener was watched".to_owned(),
        listeners => listeners.iter().map(listener).collect::<Vec<_>>().join("; "),
    });
    if !verdict.assumes.is_empty() {
        parts.push(format!("assumes {}", verdict.assumes.join(", ")));
    }
    if !verdict.not_observed.is_empty() {
        let things: Vec<_> = verdict.not_observed.iter().map(not_observed).collect();
        parts.push(format!("not observed: {}", things.join(", ")));
    }
    if !verdict.sensor.healthy {
        let blind = match verdict.sensor.blind_ms {
            0 => String::new(),
            blind => format!(", and an interface may have been without it for {}", seconds(blind)),
        };
        let strategy = verdict.sensor.strategy.name();
        parts.push(format!("the sensor ({strategy}) was not known to see everything{blind}"));
    }
    parts.extend(verdict.sources.as_ref().and_then(still_sending));
    parts.extend(verdict.late.as_ref().map(late));
    parts.join("; ")
}

/// Who sent attempts after the withdrawal; nothing if nobody did.
fn still_sending(sources: &Sources) -> Option<String> {
    let since = |source: &Source| source.since_withdrawal.filter(|count| *count > 0);
    let who: Vec<_> = sources
        .list
        .iter()
        .filter_map(|source| Some(format!("{} from {} over {}", since(source)?, self::source(source), source.family)))
        .collect();
    (!who.is_empty()).then(|| format!("after the withdrawal came {}", who.join(", ")))
}

/// A source by its node, where it has one: `node b (10.0.0.2)`.
pub fn source(source: &Source) -> String {
    match &source.node {
        Some(node) => format!("node {node} ({})", source.from),
        None => source.from.clone(),
    }
}

/// What came after the end.
fn late(late: &Late) -> String {
    let Late { taken, refused, opaque, last_after_ms, observed_for_ms } = *late;
    let mut text = match last_after_ms {
        None => "nothing came after the end".to_owned(),
        Some(last) => {
            let opaque = if opaque > 0 { format!(", {opaque} that could not be parsed") } else { String::new() };
            format!("{taken} taken{opaque} and {refused} refused after the end, the last {} after it", seconds(last))
        }
    };
    match observed_for_ms {
        0 => text.push_str(" so far, with a listener still open or just closed"),
        watched => write_to(&mut text, format_args!(", watched for {} since the listeners closed", seconds(watched))),
    }
    text
}

/// What is understood of a verdict of another version.
pub(super) fn foreign_verdict(reason: &str, duration_ms: u64) -> String {
    format!(
        "{reason} after {}; the agent is of another version, and --json shows all that it says",
        seconds(duration_ms)
    )
}

/// What holds a drain, in words.
pub fn holding(conditions: &[Condition]) -> String {
    conditions.iter().map(|condition| self::condition(*condition)).collect::<Vec<_>>().join(", ")
}

/// Milliseconds as seconds: `4.312 s`, `2 s`.
pub fn seconds(millis: u64) -> String {
    let (whole, rest) = (millis / 1000, millis % 1000);
    let text = format!("{whole}.{rest:03}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A condition's name, as a heading has it.
pub fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::Floor => "minimum wait",
        Condition::Quiet => "new connections",
        Condition::Retry => "retries",
        Condition::Handshakes => "handshakes",
        Condition::Connections => "connections",
        Condition::Routing => "routing",
        Condition::LoadBalancer => "load balancer",
    }
}

fn condition(condition: Condition) -> &'static str {
    match condition {
        Condition::Floor => "the minimum wait",
        Condition::Quiet => "new connections",
        Condition::Retry => "a dropped SYN that its client will send again",
        Condition::Handshakes => "handshakes under way",
        Condition::Connections => "established connections",
        Condition::Routing => "routing that is not withdrawn everywhere",
        Condition::LoadBalancer => "a load balancer that may still send here",
    }
}

fn held_by(held: &HeldBy) -> Option<String> {
    let HeldBy { floor_ms, quiet_ms, retry_ms, handshakes_ms, connections_ms, routing_ms, load_balancer_ms } = *held;
    let mut held = [
        (floor_ms, Condition::Floor),
        (quiet_ms, Condition::Quiet),
        (retry_ms, Condition::Retry),
        (handshakes_ms, Condition::Handshakes),
        (connections_ms, Condition::Connections),
        (routing_ms, Condition::Routing),
        (load_balancer_ms, Condition::LoadBalancer),
    ];
    held.sort_by_key(|(millis, _)| std::cmp::Reverse(*millis));
    let parts: Vec<_> = held
        .into_iter()
        .filter(|(millis, _)| *millis > 0)
        .map(|(millis, condition)| format!("{} for {}", self::condition(condition), seconds(millis)))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn listener(listener: &Listener) -> String {
    let families = listener.families.iter().map(family).collect::<Vec<_>>().join(", ");
    let mut text = format!("port {}: {families}", listener.port);
    if let Some(closed) = listener.closed_at_ms {
        write_to(&mut text, format_args!(", closed after {}", seconds(closed)));
    }
    text
}

fn family(counts: &FamilyCounts) -> String {
    let mut text = match counts.new {
        Some(new) => {
            let others = Class::ALL.into_iter().filter(|class| *class != Class::New);
            let others = others.filter_map(|class| Some((counts.count(class).filter(|count| *count > 0)?, class)));
            let others = others.map(|(count, class)| format!("{count} {}", self::class(class)));
            let parts: Vec<String> = [format!("{new} new")].into_iter().chain(others).collect();
            format!("{} over {}", parts.join(", "), counts.family)
        }
        None => format!("not counted over {}", counts.family),
    };
    if let Some(ago) = counts.last_attempt_ago_ms {
        write_to(&mut text, format_args!(", the last {} before", seconds(ago)));
    }
    text
}

/// What a class is, behind a number of them.
fn class(class: Class) -> &'static str {
    match class {
        Class::New => "new",
        Class::Retransmit => "retransmitted",
        Class::Refused => "refused",
        Class::Probe => "of kubelet's probes",
        Class::Ignored => "from ignored sources",
        Class::Join => "joining a connection",
        Class::Stray => "on a connection that was there",
        Class::Opaque => "that could not be parsed",
    }
}

fn not_observed(thing: &NotObserved) -> String {
    let mut text = thing.what.clone();
    if let Some(name) = &thing.name {
        write_to(&mut text, format_args!(" {name}"));
    }
    if let Some(family) = thing.family {
        write_to(&mut text, format_args!(" over {family}"));
    }
    write_to(&mut text, format_args!(" ({})", thing.why));
    text
}

/// Writing to a `String` cannot fail.
fn write_to(text: &mut String, what: std::fmt::Arguments<'_>) {
    if text.write_fmt(what).is_err() {
        text.push('…');
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::core::{
        listener::{Family, Port},
        verdict::Sensor,
    };

    /// A listener that both families reach.
    pub(crate) fn listener_of(number: u16) -> Listener {
        let counts = |family, new, ago| FamilyCounts {
            family,
            new: Some(new),
            retransmit: Some(0),
            refused: Some(0),
            join: Some(0),
            opaque: Some(0),
            stray: Some(0),
            probe: None,
            ignored: Some(0),
            late: None,
            last_attempt_ago_ms: ago,
            quiet: true,
        };
        Listener {
            port: Port::try_from(number).expect("a port"),
            closed_at_ms: None,
            families: vec![counts(Family::V4, 12, Some(2004)), counts(Family::V6, 0, None)],
        }
    }

    /// A source of port 80.
    pub(crate) fn source_of(from: &str, node: Option<&str>, since_withdrawal: Option<u64>) -> Source {
        Source {
            port: Port::try_from(80).expect("a port"),
            family: Family::V4,
            from: from.to_owned(),
            node: node.map(str::to_owned),
            attempts: 19,
            since_withdrawal,
            last_ago_ms: 204,
        }
    }

    /// A verdict.
    pub(crate) fn verdict_of(reason: Reason) -> Verdict {
        Verdict {
            reason,
            started_at: "2026-11-29T20:44:09.678872Z".to_owned(),
            duration_ms: 4312,
            held_by: HeldBy { quiet_ms: 4312, handshakes_ms: 90, ..HeldBy::default() },
            holding: Vec::new(),
            listeners: vec![listener_of(80)],
            routing: None,
            assumes: Vec::new(),
            not_observed: Vec::new(),
            sensor: Sensor { strategy: crate::core::verdict::Strategy::Tcx, healthy: true, blind_ms: 0, witness: true },
            sources: None,
            late: None,
        }
    }

    #[test]
    fn says_who_sent_after_the_withdrawal() {
        let list = vec![
            source_of("10.0.0.2", Some("b"), Some(14)),
            source_of("10.0.0.3", Some("c"), Some(0)),
            source_of("203.0.113.0/24", None, Some(2)),
        ];
        let of = |list| {
            verdict(&Verdict { sources: Some(Sources { list, ..Sources::default() }), ..verdict_of(Reason::Bound) })
        };
        let text = of(list);
        let who = "; after the withdrawal came 14 from node b (10.0.0.2) over IPv4, 2 from 203.0.113.0/24 over IPv4";
        assert!(text.ends_with(who), "{text}");
        assert!(!of(vec![source_of("10.0.0.2", Some("b"), None)]).contains("withdrawal came"), "it is not withdrawn");
    }

    #[test]
    fn says_why_for_how_long_and_what_reached_the_pod() {
        assert_eq!(
            verdict(&verdict_of(Reason::Quiet)),
            "quiet after 4.312 s: new connections have stopped on every watched listener; held by new connections for \
             4.312 s, handshakes under way for 0.09 s; port 80: 12 new over IPv4, the last 2.004 s before, 0 new over \
             IPv6"
        );
    }

    #[test]
    fn names_every_class_that_came() {
        let mut listener = listener_of(80);
        listener.families.truncate(1);
        let counts = &mut listener.families[0];
        (counts.retransmit, counts.refused, counts.join, counts.opaque) = (Some(3), Some(4), Some(5), Some(6));
        (counts.stray, counts.probe, counts.ignored) = (Some(7), Some(8), Some(9));
        let text = verdict(&Verdict { listeners: vec![listener], ..verdict_of(Reason::Quiet) });
        assert!(
            text.ends_with(
                "port 80: 12 new, 3 retransmitted, 4 refused, 8 of kubelet's probes, 9 from ignored sources, 5 joining a \
                 connection, 7 on a connection that was there, 6 that could not be parsed over IPv4, the last 2.004 s \
                 before"
            ),
            "{text}"
        );
    }

    #[test]
    fn says_what_came_after_the_end() {
        let of = |late| verdict(&Verdict { late: Some(late), ..verdict_of(Reason::Quiet) });
        let nothing = of(Late { observed_for_ms: 3200, ..Late::default() });
        assert!(
            nothing.ends_with("; nothing came after the end, watched for 3.2 s since the listeners closed"),
            "{nothing}"
        );
        let late = Late { taken: 15, refused: 10, opaque: 1, last_after_ms: Some(700), observed_for_ms: 0 };
        let some = of(late);
        assert!(
            some.ends_with(
                "; 15 taken, 1 that could not be parsed and 10 refused after the end, the last 0.7 s after it so far, \
                 with a listener still open or just closed"
            ),
            "{some}"
        );
    }

    #[test]
    fn says_what_was_not_seen() {
        let mut unverified = verdict_of(Reason::Unverified);
        let name = Some("eth1".to_owned());
        let why = "no program on it".to_owned();
        unverified.not_observed =
            vec![NotObserved { what: "interface".to_owned(), name, family: Some(Family::V6), why }];
        unverified.sensor.healthy = false;
        unverified.sensor.blind_ms = 40;
        let text = verdict(&unverified);
        assert!(text.ends_with("an interface may have been without it for 0.04 s"), "{text}");
        assert!(text.starts_with("unverified after 4.312 s"), "{text}");
        assert!(text.contains("not observed: interface eth1 over IPv6 (no program on it)"), "{text}");
        assert!(text.contains("the sensor (tcx) was not known to see everything"), "{text}");
    }

    #[test]
    fn what_nothing_counts_is_not_called_none() {
        let mut listener = listener_of(80);
        for counts in &mut listener.families {
            (counts.new, counts.opaque) = (None, None);
        }
        let unverified = Verdict { listeners: vec![listener], ..verdict_of(Reason::Unverified) };
        let text = verdict(&unverified);
        assert!(
            text.contains("port 80: not counted over IPv4, the last 2.004 s before, not counted over IPv6"),
            "{text}"
        );
    }

    #[test]
    fn says_what_still_held_at_the_bound() {
        let mut bound = verdict_of(Reason::Bound);
        bound.holding = vec![Condition::Quiet, Condition::Retry];
        bound.listeners.clear();
        let text = verdict(&bound);
        assert!(
            text.contains("still held by new connections, a dropped SYN that its client will send again"),
            "{text}"
        );
        assert!(text.contains("no listener was watched"), "{text}");
    }

    #[test]
    fn writes_seconds_without_needless_zeros() {
        for (millis, text) in [(0, "0 s"), (90, "0.09 s"), (2000, "2 s"), (4312, "4.312 s"), (100_000, "100 s")] {
            assert_eq!(seconds(millis), text);
        }
    }
}
