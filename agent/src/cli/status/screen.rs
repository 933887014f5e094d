//! The screen of `lastsyn status --watch`: as many lines and columns as there are. Pure.

use super::{aligned, who, words};
use crate::{
    core::{
        class::Class,
        verdict::{FamilyCounts, Listener, Nodes},
    },
    server::status::{ConditionStatus, DrainStatus, State, Status},
};

/// Where it is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// How many lines there are.
    pub(super) rows: usize,
    /// How wide they are.
    pub(super) columns: usize,
    /// Whether it has colours.
    pub(super) colour: bool,
}

/// What a line says, beside its words. No line depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Head,
    Good,
    Waits,
    Bad,
}

type Line = (Tone, String);

/// A frame. `before` is an earlier status, for rates.
pub(super) fn frame(status: &Status, before: Option<&Status>, screen: Screen) -> Vec<String> {
    let mut lines = vec![(Tone::Head, head(status)), sensor(status), (Tone::Plain, String::new())];
    let nodes = match &status.drain {
        Some(drain) => {
            lines.extend(conditions(drain));
            Some(drain.nodes)
        }
        None => status.verdict.as_ref().and_then(|verdict| verdict.routing.as_ref()).map(|routing| routing.nodes),
    };
    lines.extend(nodes.filter(|nodes| nodes.total > 0).map(self::nodes));
    let below = below(status, screen);
    // The listeners have what the rest leaves, and five lines at least: a heading, three of them, and how many more there are.
    let room = screen.rows.saturating_sub(lines.len() + below.len() + 1).max(5);
    lines.push((Tone::Plain, String::new()));
    lines.extend(listeners(status, before, room));
    lines.extend(below);
    lines.truncate(screen.rows);
    lines.into_iter().map(|line| painted(line, screen)).collect()
}

fn head(status: &Status) -> String {
    let state = match (&status.drain, status.state) {
        (Some(drain), _) => {
            let callers = if drain.callers == 1 { "caller" } else { "callers" };
            let (elapsed, most) = (tenths(drain.elapsed_ms), words::seconds(drain.max_wait_ms));
            format!("draining {elapsed} of at most {most}, {} {callers}", drain.callers)
        }
        (None, State::Ended) => format!("drain ended; {} in all", status.drains_ended),
        (None, _) => "serving".to_owned(),
    };
    format!("lastsyn {}  {state}  up {}", status.version, tenths(status.uptime_ms))
}

fn sensor(status: &Status) -> Line {
    let sensor = &status.sensor;
    let interfaces = sensor.interfaces.join(", ");
    match &sensor.why {
        None => (Tone::Plain, format!("sensor {}, on {interfaces}", sensor.strategy.name())),
        Some(why) => (Tone::Bad, format!("sensor {}, not known to see everything: {why}", sensor.strategy.name())),
    }
}

/// The conditions of a drain's end, one a line.
pub(super) fn conditions(drain: &DrainStatus) -> Vec<Line> {
    let row = |condition: &ConditionStatus| {
        let since = tenths(condition.since_ms);
        let state = match (condition.holds, condition.left_ms) {
            (false, _) => format!("met {since}"),
            (true, None) => format!("holds {since}"),
            (true, Some(left)) => format!("holds {since}, {} left", tenths(left)),
        };
        vec![
            condition.rule.clone(),
            words::condition_name(condition.condition).to_owned(),
            state,
            condition.waits_for.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = drain.conditions.iter().map(row).collect();
    let tones = drain.conditions.iter().map(|condition| if condition.holds { Tone::Waits } else { Tone::Good });
    tones.zip(aligned(&rows)).collect()
}

fn nodes(nodes: Nodes) -> Line {
    let Nodes { total, confirmed, assumed, waited, pending, unobservable } = nodes;
    let tone = if pending > 0 { Tone::Waits } else { Tone::Plain };
    let text = format!(
        "nodes  {confirmed} of {total} confirmed, {assumed} assumed, {waited} waited for, {pending} pending, {unobservable} \
         show nothing"
    );
    (tone, text)
}

/// Who still knocks, and how the last drain ended.
fn below(status: &Status, screen: Screen) -> Vec<Line> {
    let mut lines = Vec::new();
    if let Some(sources) = &status.sources {
        let all = who(sources);
        let (hidden, room) = (sources.more, 4);
        lines.push((Tone::Head, "who still knocks".to_owned()));
        let shown = if all.len() > room { room - 1 } else { all.len() };
        lines.extend(all.iter().take(shown).map(|line| (Tone::Plain, line.clone())));
        if shown < all.len() {
            let more = (sources.list.len() - shown) as u64 + hidden;
            lines.push((Tone::Plain, format!("and {more} more")));
        }
    }
    if let (None, Some(verdict)) = (&status.drain, &status.verdict) {
        lines.push((Tone::Head, "verdict".to_owned()));
        let text = words::verdict(verdict);
        let parts: Vec<&str> = text.split("; ").collect();
        let room = screen.rows / 3;
        lines.extend(parts.iter().take(room).map(|part| (Tone::Plain, (*part).to_owned())));
        if parts.len() > room {
            lines.push((Tone::Plain, "and more; lastsyn status shows all".to_owned()));
        }
    }
    lines
}

fn listeners(status: &Status, before: Option<&Status>, room: usize) -> Vec<Line> {
    let mut rows = vec![
        ["PORT", "FAMILY", "SYN/s", "NEW", "REFUSED", "LAST", "QUEUE", "HANDSHAKES", "CONNS", "QUIET"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut tones = vec![Tone::Head];
    for listener in &status.listeners {
        for counts in &listener.families {
            rows.push(row(status, before, listener, counts));
            tones.push(if counts.refused.unwrap_or(0) > 0 { Tone::Bad } else { Tone::Plain });
        }
    }
    let mut lines: Vec<Line> = tones.into_iter().zip(aligned(&rows)).collect();
    if lines.len() > room {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push((Tone::Plain, format!("and {more} lines of more listeners; lastsyn status shows all")));
    }
    lines
}

fn row(status: &Status, before: Option<&Status>, listener: &Listener, counts: &FamilyCounts) -> Vec<String> {
    let of = status.connections.iter().flatten().find(|connections| {
        connections.port == listener.port.number()
            && connections.family == counts.family
            && listener.port.protocol() == crate::core::listener::Protocol::Tcp
    });
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let earlier = before.and_then(|before| {
        let listener = before.listeners.iter().find(|earlier| earlier.port == listener.port)?;
        let counts = listener.families.iter().find(|earlier| earlier.family == counts.family)?;
        Some((attempts(counts), before.uptime_ms))
    });
    let ago = counts.last_attempt_ago_ms.map_or_else(|| "never".to_owned(), tenths);
    let quiet = match (listener.closed_at_ms, counts.quiet) {
        (Some(_), true) => "closed",
        (_, true) => "yes",
        (_, false) => "no",
    };
    vec![
        listener.port.to_string(),
        counts.family.to_string(),
        rate(earlier, (attempts(counts), status.uptime_ms)),
        number(counts.new),
        number(counts.refused),
        ago,
        number(of.and_then(|of| of.accept_queue)),
        number(of.map(|of| of.handshakes)),
        number(of.map(|of| of.established)),
        quiet.to_owned(),
    ]
}

/// Tenths of a second do on a screen that is drawn once a second: `4.3 s`.
fn tenths(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis / 100 % 10)
}

/// Attempts that count.
fn attempts(counts: &FamilyCounts) -> u64 {
    Class::ALL.into_iter().filter(|class| class.counts()).filter_map(|class| counts.count(class)).sum()
}

/// Per second, between two looks: nothing where the count began anew, as it does with the hook's call.
fn rate(before: Option<(u64, u64)>, (count, at_ms): (u64, u64)) -> String {
    let rate = before.and_then(|(before, before_ms)| {
        let (more, time) = (count.checked_sub(before)?, at_ms.checked_sub(before_ms).filter(|time| *time > 0)?);
        Some(format!("{}.{}", more * 1000 / time, more * 10_000 / time % 10))
    });
    rate.unwrap_or_else(|| "-".to_owned())
}

fn painted((tone, text): Line, screen: Screen) -> String {
    let text = if text.chars().count() > screen.columns {
        text.chars().take(screen.columns.saturating_sub(1)).chain(['…']).collect()
    } else {
        text
    };
    let code = match tone {
        Tone::Plain => return text,
        _ if !screen.colour => return text,
        Tone::Head => 1,
        Tone::Good => 32,
        Tone::Waits => 33,
        Tone::Bad => 31,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
