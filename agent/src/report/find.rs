//! Reports in any file: the answer of `GET /v1/report`, one report, or a log that an agent's lines are in, whatever a container
//! runtime or log store has put around them.

use serde_json::Value;

use super::Report;

/// The field of a log line that has it.
const FIELD: &str = "report";

/// Every report that a text has, in its order. Where a drain is told of more than once, by what came later.
pub fn reports(text: &str) -> Vec<Report> {
    let mut reports = match serde_json::from_str::<Value>(text) {
        Ok(value) => in_value(value),
        Err(_) => text.lines().flat_map(in_line).collect(),
    };
    let mut at = 0;
    while at < reports.len() {
        let same = |later: &Report| reports.get(at).is_some_and(|report: &Report| is_same(report, later));
        if reports.iter().skip(at + 1).any(same) {
            reports.remove(at);
        } else {
            at += 1;
        }
    }
    reports
}

fn is_same(one: &Report, other: &Report) -> bool {
    one.verdict.started_at == other.verdict.started_at && one.pod == other.pod
}

fn in_line(line: &str) -> Vec<Report> {
    // JSON, behind whatever there is.
    if let Some(json) = line.find('{').and_then(|at| line.get(at..)) {
        let first = serde_json::Deserializer::from_str(json).into_iter::<Value>().next();
        if let Some(Ok(value)) = first {
            let found = in_value(value);
            if !found.is_empty() {
                return found;
            }
        }
    }
    // Text: `report="{\"format\":…}"`.
    let quoted = line.split_once(&format!("{FIELD}=\"")).map(|(_, rest)| format!("\"{rest}"));
    let text = quoted.and_then(|quoted| serde_json::Deserializer::from_str(&quoted).into_iter::<String>().next());
    text.and_then(Result::ok).and_then(|text| serde_json::from_str(&text).ok()).into_iter().collect()
}

/// In a value: a report, a list of them, one in the field of a log line, or a line that a log store has wrapped.
fn in_value(value: Value) -> Vec<Report> {
    match value {
        Value::Array(values) => values.into_iter().flat_map(in_value).collect(),
        Value::Object(mut fields) => {
            if fields.contains_key("verdict") && fields.contains_key("attempts") {
                return serde_json::from_value(Value::Object(fields)).into_iter().collect();
            }
            if let Some(reports) = fields.remove("reports").or_else(|| fields.remove(FIELD)) {
                return match reports {
                    Value::String(text) => serde_json::from_str(&text).into_iter().collect(),
                    other => in_value(other),
                };
            }
            // Docker's `log`, others' `message`: the line as it was.
            let lines = ["log", "message", "line"].into_iter().filter_map(|name| fields.remove(name));
            lines.filter_map(|line| line.as_str().map(in_line)).flatten().collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        core::verdict::Reason,
        report::{line, tests::report_of},
    };

    #[test]
    fn finds_a_report_whatever_is_around_it() {
        let report = report_of(Reason::Quiet, 2, 30);
        let text = line(&report);
        let logged = json!({"timestamp": "2026-01-01T00:00:00Z", "level": "INFO", "report": text}).to_string();
        for file in [
            serde_json::to_string_pretty(&report).unwrap(),
            json!({"reports": [report]}).to_string(),
            logged.clone(),
            format!("what it is\n\n{logged}\nnot {{ JSON\n"),
            format!("2026-01-01T00:00:00.5Z stderr F {logged}"),
            json!({"log": format!("{logged}\n"), "stream": "stderr"}).to_string(),
            format!("[pod/web-1/lastsyn] {logged}"),
            format!("2026-01-01T00:00:00Z  INFO lastsyn::drive: the drain's course report={text:?} more=1"),
        ] {
            assert_eq!(reports(&file), std::slice::from_ref(&report), "{file}");
        }
        assert!(reports("no report, no { JSON").is_empty());
        assert!(reports("").is_empty());
        assert!(reports(r#"{"report": "{\"format\":1}"}"#).is_empty(), "half a report is none");
    }

    #[test]
    fn of_a_drain_that_is_told_twice_the_later_word_counts() {
        let first = report_of(Reason::Quiet, 1, 30);
        let mut later = first.clone();
        later.verdict.duration_ms += 1;
        let mut other = first.clone();
        other.verdict.started_at = "2026-11-29T21:00:00Z".to_owned();
        let file = [&first, &other, &later].map(|report| json!({"report": line(report)}).to_string()).join("\n");
        assert_eq!(reports(&file), [other, later]);
    }
}
