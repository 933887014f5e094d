//! What cargo-mutants tells of one mutant (its `outcomes.json`).

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// What came of one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// In words, without its place.
    pub(super) mutation: String,
    pub(super) line: u64,
    pub(super) fate: Fate,
}

/// Whether a test noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// The tests did not end.
    TimedOut,
    /// It does not compile.
    Unviable,
    /// All tests passed.
    Missed,
}

#[derive(Deserialize)]
struct File {
    outcomes: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    scenario: Scenario,
    summary: String,
}

#[derive(Deserialize)]
enum Scenario {
    Baseline,
    Mutant(Mutant),
}

#[derive(Deserialize)]
struct Mutant {
    name: String,
    span: Span,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
}

#[derive(Deserialize)]
struct Place {
    line: u64,
}

pub(super) fn parse(text: &str) -> Result<Vec<Outcome>> {
    let file: File =
        serde_json::from_str(text).context("cargo-mutants' outcomes are not in the form of its version")?;
    let mut outcomes = Vec::new();
    for Entry { scenario, summary } in file.outcomes {
        let Scenario::Mutant(mutant) = scenario else { continue };
        let fate = match summary.as_str() {
            "CaughtMutant" => Fate::Caught,
            "Timeout" => Fate::TimedOut,
            "Unviable" => Fate::Unviable,
            "MissedMutant" => Fate::Missed,
            other => bail!("`{}`: the outcome `{other}` says nothing of the tests", mutant.name),
        };
        // `src/core/quiet.rs:26:9: replace …`
        let mutation = mutant.name.splitn(4, ':').nth(3).unwrap_or(&mutant.name).trim().to_owned();
        outcomes.push(Outcome { mutation, line: mutant.span.start.line, fate });
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart_and_the_baseline_is_none() {
        let of = |line: u64, summary: &str| {
            format!(
                r#"{{"scenario":{{"Mutant":{{"name":"src/core/quiet.rs:{line}:9: replace > with >= in hold","span":{{"start":{{"line":{line},"column":9}}}}}}}},"summary":"{summary}"}}"#
            )
        };
        let text = format!(
            r#"{{"outcomes":[{{"scenario":"Baseline","summary":"Success"}},{},{}]}}"#,
            of(26, "MissedMutant"),
            of(27, "CaughtMutant")
        );
        let outcomes = parse(&text).unwrap();
        let mutation = "replace > with >= in hold".to_owned();
        let missed = Outcome { mutation: mutation.clone(), line: 26, fate: Fate::Missed };
        assert_eq!(outcomes, [missed, Outcome { mutation, line: 27, fate: Fate::Caught }]);
        assert!(parse(&format!(r#"{{"outcomes":[{}]}}"#, of(1, "Failure"))).is_err());
    }
}
