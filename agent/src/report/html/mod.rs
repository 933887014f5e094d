//! A report as one page that needs nothing else: no script, no other file. Each graphic has a title and a table of its numbers.

mod graphics;
mod style;
mod tables;

use super::{Report, text};
use crate::cli::words;

/// The page.
pub fn page(report: &Report) -> String {
    let verdict = &report.verdict;
    let whose = text::whose(report);
    let sentences = words::verdict(verdict);
    let mut sentences = sentences.split("; ");
    let first = sentences.next().unwrap_or_default();
    let rest: Vec<String> = sentences.map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
    let left_out = text::left_out(report);
    let left_out: Vec<String> =
        left_out.iter().map(|words| format!("<p class=\"note\">{}</p>", escape(words))).collect();
    let figures =
        [graphics::held(report), graphics::attempts(report), graphics::nodes(report), graphics::happened(report)];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{reason}: the drain of {whose}</title>\n\
         <style>\n{style}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"reason\">{reason}</p>\n<h1>{first}</h1>\n\
         <p>The drain of {whose}, begun {started}, told by lastsyn {agent}.</p>\n</header>\n<ul>{rest}</ul>\n{left_out}\
         {figures}{sleeps}{observed}</main>\n</body>\n</html>\n",
        reason = verdict.reason.name(),
        whose = escape(&whose),
        style = style::style(),
        rest = rest.concat(),
        left_out = left_out.concat(),
        first = escape(first),
        started = escape(&verdict.started_at),
        agent = escape(&report.agent),
        figures = figures.concat(),
        sleeps = tables::sleeps(report),
        observed = tables::observed(report),
    )
}

/// Text as it may stand in an element or an attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::verdict::{NotObserved, Reason},
        report::{
            course::{About, Entry},
            tests::report_of,
        },
    };

    /// How large a page may be.
    const LIMIT: usize = 300 * 1024;

    #[test]
    fn ten_listeners_over_both_families_for_ten_minutes_are_a_small_page() {
        let mut report = report_of(Reason::Bound, 10, 240);
        report.attempts.every_ms = 3200;
        for lane in &mut report.attempts.lanes {
            lane.counting = (0..240).map(|bin| 99_000 + bin).collect();
            lane.refused.clone_from(&lane.counting);
        }
        let what =
            "node ip-10-0-17-17.eu-central-1.compute.internal sent a new connection over IPv4 after it was confirmed";
        let entry = |number: u64| Entry { at_ms: number * 1500, about: About::Node, what: what.to_owned() };
        report.entries = (0..400).map(entry).collect();
        report.nodes =
            (0..200).map(|number| crate::report::course::NodesAt { at_ms: number * 3000, ..report.nodes[0] }).collect();
        let page = page(&report);
        assert!(page.len() <= LIMIT, "{}", page.len());
        assert!(page.len() > 60_000, "there is something on it: {}", page.len());
    }

    #[test]
    fn the_page_needs_nothing_else_and_each_graphic_has_a_title_and_a_table() {
        let page = page(&report_of(Reason::Quiet, 2, 100));
        for needless in ["<script", "http://", "https://", "url(", "@import", "src="] {
            assert!(!page.contains(needless), "{needless}");
        }
        let graphics: Vec<&str> = page.split("<svg ").skip(1).collect();
        assert_eq!(graphics.len(), 4);
        for graphic in graphics {
            assert!(graphic.starts_with("role=\"img\" aria-labelledby=\""), "{graphic}");
            let (inside, behind) = graphic.split_once("</svg>").unwrap();
            assert!(inside.contains("<title id=\""), "{inside}");
            let figure = behind.split("</figure>").next().unwrap();
            assert!(figure.contains("<table>") && figure.contains("<td>"), "{figure}");
        }
        for word in ["prefers-color-scheme: dark", "@media print", "lang=\"en\"", "<h1>quiet after 10 s"] {
            assert!(page.contains(word), "{word}");
        }
    }

    #[test]
    fn a_report_of_no_cluster_and_no_listener_is_a_page_too() {
        let mut report = report_of(Reason::Unverified, 0, 0);
        report.nodes.clear();
        report.entries.clear();
        report.conditions.clear();
        let page = page(&report);
        assert!(page.contains("nothing held it") && page.ends_with("</html>\n"), "{page}");
    }

    #[test]
    fn no_text_of_others_is_markup() {
        let mut report = report_of(Reason::Unverified, 1, 20);
        let evil = "</title><script>alert('\"&')</script>";
        evil.clone_into(&mut report.pod.name);
        evil.clone_into(&mut report.entries[0].what);
        evil.clone_into(&mut report.verdict.started_at);
        report.verdict.not_observed = vec![NotObserved {
            what: evil.to_owned(),
            name: Some(evil.to_owned()),
            family: None,
            why: evil.to_owned(),
        }];
        let page = page(&report);
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#39;&quot;&amp;&#39;)"), "{page}");
    }
}
