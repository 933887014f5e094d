//! What is in the state file, and what another agent may have left in its place. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::{self, Report};

/// The format's number. What a later version of it adds, an earlier one passes over; a format that means something else gets another.
pub const FORMAT: u64 = 1;

/// How large the file is at most, in bytes. A report is some ten KiB; that of a pod with sixty listeners and hundreds of nodes has
/// hundreds.
pub const LIMIT: usize = 1024 * 1024;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The courses of the last drains that have ended, oldest first.
    pub reports: Vec<Report>,
    /// When the drain began that was under way, in RFC 3339, where one was.
    pub under_way: Option<String>,
}

/// What was found in a state file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What could be read.
    pub state: State,
    /// How many reports could not: those of another version, or of none.
    pub unreadable: usize,
}

/// The file holds nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It was not written to its end, or is something else.
    #[error("it is no whole state file: {0}")]
    Damaged(String),
    /// It is of a version that writes another format.
    #[error("it has format {format}, of agent {agent}, and this one reads {FORMAT}")]
    Newer {
        /// Its format.
        format: u64,
        /// Which agent wrote it.
        agent: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    format: u64,
    agent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    under_way: Option<&'a str>,
    reports: &'a [Report],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    format: u64,
    #[serde(default)]
    under_way: Option<String>,
    #[serde(default)]
    reports: Vec<Value>,
}

/// The file's text, of at most [`LIMIT`] bytes: what does not fit is left out, the oldest drain first, and of the newest what its line in
/// the log leaves out too.
///
/// # Errors
///
/// In words, where the reports cannot be written as JSON.
pub fn text(state: &State) -> Result<String, String> {
    let of = |reports: &[Report]| {
        let agent = env!("CARGO_PKG_VERSION");
        let written = Written { format: FORMAT, agent, under_way: state.under_way.as_deref(), reports };
        serde_json::to_string(&written).map(|text| text + "\n").map_err(|error| error.to_string())
    };
    let mut reports = state.reports.as_slice();
    loop {
        let text = of(reports)?;
        match reports {
            _ if text.len() <= LIMIT => return Ok(text),
            [_, newer @ ..] if !newer.is_empty() => reports = newer,
            [last] => return of(&[serde_json::from_str(&report::line(last)).map_err(|error| error.to_string())?]),
            _ => return of(&[]),
        }
    }
}

/// What a file's bytes hold.
///
/// # Errors
///
/// If it is nothing that this version can use.
pub fn found(bytes: &[u8]) -> Result<Found, Unusable> {
    if bytes.len() > LIMIT {
        return Err(Unusable::Damaged(format!("it is larger than the {LIMIT} bytes that any has")));
    }
    let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
    let value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
    // Before anything else of it: another format may mean something else by the same words.
    let format = value.get("format").and_then(Value::as_u64).unwrap_or_default();
    if format > FORMAT {
        let agent = value.get("agent").and_then(Value::as_str).unwrap_or("that is not named");
        return Err(Unusable::Newer { format, agent: agent.chars().take(40).collect() });
    }
    let Read { format, under_way, reports } = serde_json::from_value(value).map_err(damaged)?;
    if format != FORMAT {
        return Err(Unusable::Damaged(format!("it has format {format}, which no agent writes")));
    }
    let all = reports.len();
    let reports: Vec<Report> =
        reports.into_iter().filter_map(|report| serde_json::from_value(report).ok()).filter(is_known).collect();
    let unreadable = all - reports.len();
    Ok(Found { state: State { reports, under_way }, unreadable })
}

fn is_known(report: &Report) -> bool {
    report.format == report::FORMAT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core::verdict::Reason, report::tests::report_of};

    fn state(reports: usize) -> State {
        let report = |number: usize| {
            let mut report = report_of(Reason::Quiet, 2, 30);
            report.verdict.started_at = format!("2026-11-29T20:0{number}:00Z");
            report
        };
        State { reports: (0..reports).map(report).collect(), under_way: None }
    }

    #[test]
    fn what_is_written_is_read() {
        for written in [State::default(), state(1), State { under_way: Some("2026".to_owned()), ..state(3) }] {
            let read = found(text(&written).unwrap().as_bytes()).unwrap();
            assert_eq!(read, Found { state: written, unreadable: 0 });
        }
    }

    #[test]
    fn a_file_that_was_not_written_to_its_end_is_none_wherever_it_ends() {
        let whole = text(&state(1)).unwrap();
        // Its last byte is the end of the line.
        for end in 0..whole.len() - 1 {
            assert!(matches!(found(&whole.as_bytes()[..end]), Err(Unusable::Damaged(_))), "{end}");
        }
    }

    #[test]
    fn of_an_older_or_a_newer_version_it_is_said_what_it_is() {
        let newer = br#"{"format": 2, "agent": "9.0.0", "reports": "elsewhere"}"#;
        let told = Unusable::Newer { format: 2, agent: "9.0.0".to_owned() };
        assert_eq!(found(newer), Err(told.clone()));
        assert_eq!(told.to_string(), "it has format 2, of agent 9.0.0, and this one reads 1");
        for none in [&b"{}"[..], b"[]", b"1", b"null", br#"{"format": -1}"#, br#"{"format": 0, "reports": []}"#] {
            assert!(matches!(found(none), Err(Unusable::Damaged(_))), "{none:?}");
        }
        // The same format by other versions: with fields that this one does not know, and with a report that it cannot read.
        let mut file: Value = serde_json::from_str(&text(&state(2)).unwrap()).unwrap();
        file["more"] = Value::Bool(true);
        file["reports"][0]["more"] = Value::Bool(true);
        file["reports"]
            .as_array_mut()
            .unwrap()
            .insert(0, serde_json::json!({"format": 1, "verdict": "as it was once"}));
        let mut other = file["reports"][1].clone();
        other["format"] = 7.into();
        file["reports"].as_array_mut().unwrap().push(other);
        let read = found(file.to_string().as_bytes()).unwrap();
        assert_eq!(read, Found { state: state(2), unreadable: 2 });
    }

    #[test]
    fn it_stays_small_and_keeps_the_newest() {
        let mut large = state(4);
        for report in &mut large.reports {
            report.entries = vec![report.entries[0].clone(); 4000];
        }
        let written = text(&large).unwrap();
        assert!(written.len() <= LIMIT, "{}", written.len());
        let kept = found(written.as_bytes()).unwrap().state.reports;
        assert!(!kept.is_empty() && kept.len() < 4 && kept.ends_with(&large.reports[3..]), "{}", kept.len());

        large.reports[3].entries = vec![large.reports[3].entries[0].clone(); 20_000];
        let kept = found(text(&large).unwrap().as_bytes()).unwrap().state.reports;
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].verdict.started_at, large.reports[3].verdict.started_at);
        assert!(kept[0].left_out.entries > 0, "{:?}", kept[0].left_out);
        assert!(matches!(found(&vec![b' '; LIMIT + 1]), Err(Unusable::Damaged(_))));
    }

    proptest::proptest! {
        #[test]
        fn takes_any_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            drop(found(&bytes));
        }

        #[test]
        fn takes_a_file_with_any_byte_changed(at in 0.0..1.0, byte in proptest::num::u8::ANY) {
            let mut bytes = text(&state(1)).unwrap().into_bytes();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in the file")]
            let place = (bytes.len() as f64 * at) as usize;
            bytes[place] = byte;
            drop(found(&bytes));
        }
    }
}
