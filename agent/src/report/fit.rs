//! A report as one line of a log. Container runtimes split lines at 16 KiB, and what is split no log store puts together: what
//! does not fit is left out, the least telling first, and counted.

use super::{
    bins::merged,
    course::{LeftOut, Report},
};
use crate::core::verdict::Sources;

/// How long the line is at most, in bytes, with everything that the logger puts around the report.
pub const LINE_LIMIT: usize = 12 * 1024;

/// What the logger puts around it at most: time, level, words.
const AROUND: usize = 256;

/// How many of each are told: the first of these by which it fits.
struct Measure {
    bins: usize,
    lanes: usize,
    entries: usize,
    nodes: usize,
    spans: usize,
    listeners: usize,
    evidence: usize,
    sources: usize,
    not_observed: usize,
    text: usize,
}

const MEASURES: [Measure; 7] = [
    measure(240, 40, 60, 40, 30, 300),
    measure(120, 24, 40, 20, 20, 240),
    measure(60, 20, 30, 14, 12, 200),
    measure(40, 12, 20, 10, 8, 140),
    measure(20, 8, 12, 6, 4, 100),
    measure(10, 4, 8, 4, 2, 80),
    measure(4, 2, 4, 2, 1, 50),
];

const fn measure(bins: usize, lanes: usize, entries: usize, some: usize, few: usize, text: usize) -> Measure {
    Measure {
        bins,
        lanes,
        entries,
        nodes: some,
        spans: few,
        listeners: lanes / 2,
        evidence: some,
        sources: few,
        not_observed: some,
        text,
    }
}

/// The report as JSON that, quoted once more as a logger does, is at most [`LINE_LIMIT`] long.
pub fn line(report: &Report) -> String {
    let mut json = String::new();
    for measure in [None].into_iter().chain(MEASURES.iter().map(Some)) {
        let report = measure.map_or_else(|| report.clone(), |measure| thinned(report.clone(), measure));
        // Writing numbers, strings and lists of them to a string does not fail.
        json = serde_json::to_string(&report).unwrap_or_default();
        if quoted(&json) + AROUND <= LINE_LIMIT {
            break;
        }
    }
    json
}

/// How long a text is as a string of JSON.
fn quoted(text: &str) -> usize {
    2 + text.bytes().map(|byte| if matches!(byte, b'"' | b'\\') { 2 } else { 1 }).sum::<usize>()
}

fn thinned(mut report: Report, measure: &Measure) -> Report {
    let left_out = &mut report.left_out;
    let verdict = &mut report.verdict;

    let longest = report.attempts.lanes.iter().map(|lane| lane.counting.len()).max().unwrap_or(0);
    let by = longest.div_ceil(measure.bins).max(1);
    report.attempts.every_ms = report.attempts.every_ms.saturating_mul(by as u64);
    // Lanes in which something came tell more.
    report.attempts.lanes.sort_by_key(|lane| std::cmp::Reverse(lane.counting.iter().sum::<u64>()));
    left_out.lanes += shorten(&mut report.attempts.lanes, measure.lanes);
    report.attempts.lanes.sort_by_key(|lane| (lane.port, lane.family));
    for lane in &mut report.attempts.lanes {
        lane.counting = merged(&lane.counting, by);
        lane.refused = merged(&lane.refused, by);
    }

    // How it began and how it ended.
    let begun = measure.entries / 3;
    if report.entries.len() > measure.entries {
        let gone = report.entries.len() - measure.entries;
        report.entries.drain(begun..begun + gone);
        left_out.entries += gone as u64;
    }
    if report.nodes.len() > measure.nodes {
        let gone = report.nodes.len() - measure.nodes;
        report.nodes.drain(1..=gone);
        left_out.nodes += gone as u64;
    }
    for held in &mut report.conditions {
        if held.spans.len() > measure.spans {
            let last = held.spans.last().map_or(0, |(_, to)| *to);
            left_out.spans += shorten(&mut held.spans, measure.spans);
            if let Some((_, to)) = held.spans.last_mut() {
                *to = last;
            }
        }
    }

    // A listener that was still sent to tells more than one that was quiet for long.
    let busy = |listener: &crate::core::verdict::Listener| {
        std::cmp::Reverse(listener.families.iter().filter_map(|family| family.new).sum::<u64>())
    };
    verdict.listeners.sort_by_key(busy);
    left_out.listeners += shorten(&mut verdict.listeners, measure.listeners);
    verdict.listeners.sort_by_key(|listener| listener.port);
    if let Some(routing) = &mut verdict.routing {
        left_out.services += shorten(&mut routing.services, measure.lanes);
        left_out.evidence += shorten(&mut routing.evidence, measure.evidence);
    }
    if let Some(Sources { list, .. }) = &mut verdict.sources {
        left_out.sources += shorten(list, measure.sources);
    }
    left_out.not_observed += shorten(&mut verdict.not_observed, measure.not_observed);

    for entry in &mut report.entries {
        cut(&mut entry.what, measure.text, left_out);
    }
    for thing in &mut verdict.not_observed {
        cut(&mut thing.why, measure.text, left_out);
        if let Some(name) = &mut thing.name {
            cut(name, measure.text, left_out);
        }
    }
    if let Some(routing) = &mut verdict.routing {
        if let Some(why) = routing.fence.as_mut().and_then(|fence| fence.why.as_mut()) {
            cut(why, measure.text, left_out);
        }
        for evidence in &mut routing.evidence {
            cut(&mut evidence.node, measure.text, left_out);
        }
        for service in &mut routing.services {
            cut(&mut service.name, measure.text, left_out);
        }
    }
    report
}

/// Keeps the first `most`, and says how many went.
fn shorten<T>(list: &mut Vec<T>, most: usize) -> u64 {
    let gone = list.len().saturating_sub(most);
    list.truncate(most);
    gone as u64
}

/// Cuts a text that is longer, and says so in it.
fn cut(text: &mut String, most: usize, left_out: &mut LeftOut) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
        left_out.texts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::verdict::{NodeEvidence, NotObserved, Reason, Routing},
        report::{course::Entry, tests::report_of},
    };

    #[test]
    fn a_small_report_is_whole() {
        let report = report_of(Reason::Quiet, 2, 100);
        assert_eq!(serde_json::from_str::<Report>(&line(&report)).unwrap(), report);
    }

    #[test]
    fn the_largest_report_fits_and_says_what_it_lacks() {
        let mut report = report_of(Reason::Unverified, 61, 240);
        let node = |number: usize| format!("ip-10-0-{number}-17.eu-central-1.compute.internal");
        report.verdict.routing = Some(Routing {
            evidence: (0..500)
                .map(|number| NodeEvidence {
                    node: node(number),
                    family: crate::core::listener::Family::V4,
                    by: "fence".to_owned(),
                    assumes: vec!["watchLag<=2s".to_owned()],
                })
                .collect(),
            ..Routing::default()
        });
        let why = "\"connection\" refused \\ ".repeat(40);
        report.verdict.not_observed = (0..300)
            .map(|number| NotObserved {
                what: "node".to_owned(),
                name: Some(node(number)),
                family: None,
                why: why.clone(),
            })
            .collect();
        report.entries = (0..400)
            .map(|number| Entry { at_ms: number, about: crate::report::course::About::Node, what: why.clone() })
            .collect();
        let json = line(&report);
        let logged = serde_json::to_string(&json).unwrap();
        assert!(logged.len() + AROUND <= LINE_LIMIT, "{}", logged.len());
        let told: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(told.verdict.reason, Reason::Unverified);
        let all = |left: u64, told: usize| usize::try_from(left).unwrap() + told;
        assert_eq!(all(told.left_out.not_observed, told.verdict.not_observed.len()), 300);
        assert!(!told.verdict.not_observed.is_empty(), "that something was not observed is never left out");
        assert_eq!(all(told.left_out.evidence, told.verdict.routing.unwrap().evidence.len()), 500);
        assert_eq!(all(told.left_out.entries, told.entries.len()), 400);
        assert_eq!(all(told.left_out.listeners, told.verdict.listeners.len()), 61);
        assert_eq!(all(told.left_out.lanes, told.attempts.lanes.len()), 122);
    }

    #[test]
    fn wider_bins_lose_no_attempt() {
        let mut report = report_of(Reason::Quiet, 3, 240);
        report.entries = vec![Entry { at_ms: 1, about: crate::report::course::About::Hook, what: "x".repeat(80) }; 300];
        let told: Report = serde_json::from_str(&line(&report)).unwrap();
        assert!(told.attempts.every_ms > report.attempts.every_ms, "it is thinner");
        assert_eq!(told.sum().iter().sum::<u64>(), report.sum().iter().sum::<u64>());
    }
}
