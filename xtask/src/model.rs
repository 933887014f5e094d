//! `cargo xtask model`: runs the model check of the confirmation and routing rules (`agent/tests/model`), and shows each
//! case: what is judged, what it assumes, whether it holds, how much was searched, and the shortest way round what falls.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::{process, workspace};

/// What the test tells of one case (`agent/tests/model/search.rs`).
#[derive(Debug, Deserialize, Serialize)]
struct Case {
    name: String,
    rule: String,
    assumes: Vec<String>,
    world: String,
    /// The shortest way to a violation; `None` where the whole world has none.
    trace: Option<Vec<String>>,
    /// Whether there was a verdict at all.
    confirms: bool,
    states: u64,
    depth: u64,
    seconds: f64,
}

pub(crate) fn run(root: &Path, deep: bool, json: bool) -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory for the records")?;
    let records = directory.path().join("cases.jsonl");
    let mut check = workspace::cargo(root);
    check.args(["test", "--locked", "--test", "model"]).env("LASTSYN_MODEL_RECORDS", &records);
    if deep {
        check.args(["--profile", "simulate"]).env("LASTSYN_MODEL", "deep");
    } else {
        check.env_remove("LASTSYN_MODEL");
    }
    // A case that is not as expected fails the test, and is shown with the others.
    let outcome = process::run(&mut check);
    let text = if records.exists() {
        fs::read_to_string(&records).with_context(|| format!("cannot read {}", records.display()))?
    } else {
        String::new()
    };
    let cases = parse(&text)?;
    if json {
        print_json(&cases)?;
    } else {
        print(&format!("{}", Shown(&cases)));
    }
    outcome?;
    if cases.is_empty() {
        bail!("the test has searched nothing: does agent/tests/model still write its records?");
    }
    Ok(())
}

/// The cases, in the order of their names: those of one rule stand together.
fn parse(text: &str) -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = text
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("the record `{line}` is not one of a case")))
        .collect::<Result<_>>()?;
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

#[expect(clippy::print_stdout, reason = "this verb's result")]
fn print(text: &str) {
    print!("{text}");
}

fn print_json(cases: &[Case]) -> Result<()> {
    for case in cases {
        print(&format!("{}\n", serde_json::to_string(case).context("a case cannot be written as JSON")?));
    }
    Ok(())
}

/// All cases, for people: first what falls, with its trace, then what holds, then the sums.
struct Shown<'a>(&'a [Case]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (falls, holds): (Vec<_>, Vec<_>) = self.0.iter().partition(|case| case.trace.is_some());
        for (title, cases) in [("FALLS: the shortest way round each", &falls), ("HOLDS: no way round", &holds)] {
            writeln!(f, "{title}\n")?;
            cases.iter().try_for_each(|case| writeln!(f, "{case}"))?;
        }
        let states: u64 = self.0.iter().map(|case| case.states).sum();
        let seconds: f64 = self.0.iter().map(|case| case.seconds).sum();
        let deepest = self.0.iter().map(|case| case.depth).max().unwrap_or(0);
        writeln!(
            f,
            "{} cases fall, {} hold; {states} states, at most {deepest} steps deep, {seconds:.1} s of searching",
            falls.len(),
            holds.len()
        )
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, rule, assumes, world, trace, confirms, states, depth, seconds } = self;
        let outcome = match (trace, confirms) {
            (Some(_), _) => "falls",
            (None, true) => "holds",
            (None, false) => "never confirms",
        };
        let assumes = if assumes.is_empty() { "nothing".to_owned() } else { assumes.join(", ") };
        writeln!(f, "{rule}: {outcome}")?;
        writeln!(f, "    {name}: {world}")?;
        writeln!(f, "    assumes {assumes}")?;
        writeln!(f, "    {states} states, {depth} steps deep, {seconds:.1} s")?;
        trace.iter().flatten().try_for_each(|step| writeln!(f, "        {step}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLDS: &str = r#"{"name":"c5","rule":"C5 syncs","assumes":["watchLag"],"world":"3 ticks","trace":null,"confirms":true,"states":30320,"depth":27,"seconds":0.26}"#;
    const FALLS: &str = r#"{"name":"a_stamp","rule":"a newer stamp","assumes":[],"world":"3 ticks","trace":["0 API: a write","1 agent: ends the drain"],"confirms":true,"states":645,"depth":9,"seconds":0.01}"#;

    #[test]
    fn each_case_is_shown_with_what_it_assumes_and_its_trace() {
        let cases = parse(&format!("{HOLDS}\n{FALLS}\n")).unwrap();
        let shown = format!("{}", Shown(&cases));
        let falls = shown.find("a newer stamp: falls").unwrap();
        let holds = shown.find("C5 syncs: holds").unwrap();
        assert!(falls < holds, "{shown}");
        for part in ["assumes watchLag", "assumes nothing", "        1 agent: ends the drain\n", "30965 states"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }

    #[test]
    fn a_rule_that_never_confirms_is_not_called_sound() {
        let cases = parse(&HOLDS.replace("\"confirms\":true", "\"confirms\":false")).unwrap();
        assert!(format!("{}", Shown(&cases)).contains("never confirms"));
    }

    #[test]
    fn what_is_no_record_is_named() {
        let error = format!("{:#}", parse("nonsense").unwrap_err());
        assert!(error.contains("nonsense"), "{error}");
    }
}
