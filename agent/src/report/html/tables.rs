//! Tables of the page.

use super::escape;
use crate::{
    cli::words::{self, seconds},
    report::{Report, text},
};

/// A table with a heading row. The cells are markup already.
pub(super) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = "<div class=\"table\" tabindex=\"0\"><table><tr>".to_owned();
    for heading in headings {
        text.push_str("<th>");
        text.push_str(&escape(heading));
        text.push_str("</th>");
    }
    text.push_str("</tr>\n");
    for row in rows {
        text.push_str("<tr>");
        for cell in row {
            text.push_str("<td>");
            text.push_str(&cell);
            text.push_str("</td>");
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    text
}

fn section(heading: &str, table: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{table}</section>\n", escape(heading))
}

/// What a hook that only sleeps would have done.
pub(super) fn sleeps(report: &Report) -> String {
    let row = |sleep: &crate::report::sleeps::Sleep| {
        vec![seconds(sleep.seconds * 1000), escape(&text::sleep_words(sleep.after, sleep.longer_ms))]
    };
    let rows = crate::report::sleeps::sleeps(report);
    let rows = rows.iter().map(row);
    section("A hook that only sleeps, instead", &table(&["sleep", "what it would have done"], rows))
}

/// What was not observed, what it rests on, and who sent.
pub(super) fn observed(report: &Report) -> String {
    let verdict = &report.verdict;
    let mut text = String::new();
    let rows = verdict.not_observed.iter().map(|thing| {
        let name = thing.name.clone().unwrap_or_default();
        let family = thing.family.map_or_else(String::new, |family| family.to_string());
        [&thing.what, &name, &family, &thing.why].map(|cell| escape(cell)).to_vec()
    });
    if verdict.not_observed.is_empty() {
        text.push_str(
            "<section>\n<h2>What was not observed</h2>\n<p>Nothing that the agent knows of.</p>\n</section>\n",
        );
    } else {
        text.push_str(&section("What was not observed", &table(&["what", "which", "family", "why"], rows)));
    }
    if let Some(sources) = verdict.sources.as_ref().filter(|sources| !sources.list.is_empty()) {
        let rows = sources.list.iter().map(|source| {
            let since = source.since_withdrawal.map_or_else(|| "–".to_owned(), |count| count.to_string());
            let who = escape(&words::source(source));
            vec![who, source.port.to_string(), source.family.to_string(), source.attempts.to_string(), since]
        });
        let headings = ["from", "port", "family", "attempts", "since the withdrawal"];
        text.push_str(&section("Who sent new connections", &table(&headings, rows)));
    }
    text
}
