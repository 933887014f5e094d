//! A report as text.

use std::fmt::Write;

use super::{Report, bins::merged, course::About, sleeps::sleeps};
use crate::{
    cli::words::{self, seconds},
    core::verdict::Nodes,
};

/// How many columns a lane of attempts has.
const COLUMNS: usize = 60;

/// Eight heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The whole report, for a terminal of 100 columns or a file.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        // Writing to a string does not fail.
        writeln!(text, "{}", words.trim_end()).ok();
    };
    line(format!("The drain of {}", whose(report)));
    line(format!("began {}", report.verdict.started_at));
    line(String::new());
    for part in words::verdict(&report.verdict).split("; ") {
        line(format!("  {part}"));
    }
    line(String::new());
    line("What held it".to_owned());
    for held in &report.conditions {
        let spans = held.spans.iter().map(|(from, to)| format!("{} to {}", seconds(*from), seconds(*to)));
        line(format!("  {:<16} {}", words::condition_name(held.condition), spans.collect::<Vec<_>>().join(", ")));
    }
    let every = report.attempts.every_ms;
    let longest = report.attempts.lanes.iter().map(|lane| lane.counting.len()).max().unwrap_or(0);
    let by = longest.div_ceil(COLUMNS).max(1);
    line(String::new());
    line(format!("New connections, {} a column", seconds(every.saturating_mul(by as u64))));
    for lane in &report.attempts.lanes {
        let who = format!("{} {}", lane.port, lane.family);
        let all: u64 = lane.counting.iter().sum();
        let refused: u64 = lane.refused.iter().sum();
        let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
        line(format!(
            "  {who:<14} {:<width$} {all}{refused}",
            bars(&merged(&lane.counting, by)),
            width = longest.div_ceil(by)
        ));
    }
    if !report.nodes.is_empty() {
        line(String::new());
        line("Nodes".to_owned());
        for at in &report.nodes {
            line(format!("  {:<10} {}", seconds(at.at_ms), nodes(at.nodes)));
        }
    }
    line(String::new());
    line("What happened".to_owned());
    for entry in &report.entries {
        line(format!("  {:<10} {:<9} {}", seconds(entry.at_ms), about(entry.about), entry.what));
    }
    line(String::new());
    line("A hook that only sleeps".to_owned());
    for sleep in sleeps(report) {
        line(format!("  {:<10} {}", seconds(sleep.seconds * 1000), sleep_words(sleep.after, sleep.longer_ms)));
    }
    for words in left_out(report) {
        line(words);
    }
    text
}

/// Which pod's it is.
pub(super) fn whose(report: &Report) -> String {
    let pod = &report.pod;
    match (pod.namespace.as_str(), pod.name.as_str(), pod.node.as_str()) {
        (_, "", _) => "a pod that the agent was not told of".to_owned(),
        ("", name, "") => name.to_owned(),
        (namespace, name, "") => format!("{namespace}/{name}"),
        (namespace, name, node) => format!("{namespace}/{name} on node {node}"),
    }
}

/// A lane's name.
pub(super) fn about(about: About) -> &'static str {
    match about {
        About::Hook => "hook",
        About::Listener => "listener",
        About::Sensor => "sensor",
        About::Service => "service",
        About::Node => "nodes",
        About::Server => "server",
        About::Other => "other",
    }
}

pub(super) fn nodes(nodes: Nodes) -> String {
    let Nodes { total, confirmed, assumed, waited, pending, unobservable } = nodes;
    let parts = [
        (confirmed, "confirmed"),
        (assumed, "assumed"),
        (waited, "waited for"),
        (pending, "pending"),
        (unobservable, "show nothing"),
    ];
    let parts: Vec<_> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    format!("of {total}: {}", parts.join(", "))
}

pub(super) fn sleep_words(after: u64, longer_ms: u64) -> String {
    match (after, longer_ms) {
        (0, 0) => {
            "no attempt was counted after it; it is shorter than the drain, which did not know that yet".to_owned()
        }
        (0, longer) => format!("{} longer than the drain", seconds(longer)),
        (after, 0) => format!("{after} attempts came after it"),
        (after, longer) => {
            format!("{after} attempts came after it, though it is {} longer than the drain", seconds(longer))
        }
    }
}

/// What the report lacks, in words; nothing where it is whole.
pub(super) fn left_out(report: &Report) -> Vec<String> {
    let left = &report.left_out;
    let parts = [
        (left.not_observed, "more things that were not observed"),
        (left.entries, "things that happened"),
        (left.nodes, "changes of the nodes"),
        (left.spans, "pauses of a condition"),
        (left.lanes, "lanes of attempts"),
        (left.listeners, "listeners"),
        (left.services, "Services"),
        (left.evidence, "nodes' evidence"),
        (left.sources, "sources"),
        (left.texts, "ends of long texts"),
    ];
    let parts: Vec<_> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() {
        return Vec::new();
    }
    vec![String::new(), format!("Not in this report, for want of room: {}", parts.join(", "))]
}

fn bars(bins: &[u64]) -> String {
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let bar = |count: &u64| match count {
        0 => ' ',
        count => {
            usize::try_from((count * 8).div_ceil(most) - 1).ok().and_then(|at| BARS.get(at)).copied().unwrap_or('█')
        }
    };
    bins.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::verdict::Reason, report::tests::report_of};

    #[test]
    fn tells_what_held_what_came_and_what_happened() {
        let report = report_of(Reason::Quiet, 1, 100);
        let text = text(&report);
        for shown in [
            "The drain of shop/web-1 on node node-a",
            "quiet after 10 s: new connections have stopped",
            "new connections  0 s to 10 s",
            "routing          0 s to 2 s, 3 s to 8 s",
            "New connections, 0.2 s a column",
            ", 1 refused",
            "0.12 s     of 6: 6 pending",
            "0.09 s     service   Service web, port http, over IPv4 leads to the pod no longer",
            "5 s        600 attempts came after it",
            "30 s       20 s longer than the drain",
        ] {
            let after: u64 = report.sum().iter().skip(50).sum();
            let shown = shown.replace("600", &after.to_string());
            assert!(text.contains(&shown), "no {shown}\n{text}");
        }
        assert!(!text.contains("want of room"), "{text}");
        let mut less = report;
        less.left_out.not_observed = 3;
        assert!(super::text(&less).contains("3 more things that were not observed"));
    }

    #[test]
    fn a_bar_is_as_high_as_its_count() {
        assert_eq!(bars(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(bars(&[]), "");
    }
}
