//! `cargo xtask mutate`: breaks the decision core in every small way, and shows which breakages no test notices.
//!
//! The core stands alone in a package of its own for this ([`crate::shadow`]), so that a mutant costs seconds. What came of
//! each file is kept in `results/mutants-core.json` ([`record`]) with the digest of the file as it was: a run that is
//! stopped goes on where it was, and a file that has changed since is done again.

mod outcome;
mod record;

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    process,
    setup::cargo_program::MUTANTS,
    shadow::{self, Effort, Shadow},
};
use outcome::{Fate, Outcome};
use record::Record;

/// Which files to break, and how.
#[derive(Args)]
pub(crate) struct Choice {
    /// Only these files below agent/src/core: a path, or one with `*`; may be given again
    #[arg(long, value_name = "GLOB")]
    file: Vec<String>,
    /// Only the K-th of N parts of the files, as in 1/4
    #[arg(long, value_name = "K/N", value_parser = parse_shard)]
    shard: Option<(usize, usize)>,
    /// Also files that were done as they are now
    #[arg(long)]
    again: bool,
    /// Break nothing: fail where a file has changed since it was done, or a survivor has no reason
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(root: &Path, choice: &Choice) -> Result<()> {
    let core = root.join("agent/src/core");
    let results = root.join("results/mutants-core.json");
    let mut record = Record::read(&results)?;
    let sources = shadow::sources(&core)?;
    record.forget_all_but(&sources);
    let (index, parts) = choice.shard.unwrap_or((1, 1));
    let chosen = sources.iter().filter(|source| choice.takes(&source.name));
    let part: Vec<_> = chosen.enumerate().filter(|(at, _)| at % parts == index - 1).map(|(_, source)| source).collect();
    if part.is_empty() {
        bail!("no file of agent/src/core is chosen: --file takes what stands below it, as in 'confirm/*'");
    }
    let todo: Vec<_> = part.iter().filter(|source| choice.again || !record.has(source)).collect();
    if !choice.check && !todo.is_empty() {
        let program = MUTANTS.ensure()?;
        let shadow = Shadow::make(root)?;
        eprintln!("The tests as they are");
        process::run(&mut shadow.tests())?;
        for (at, source) in todo.iter().enumerate() {
            eprintln!("[{}/{}] {}", at + 1, todo.len(), source.name);
            let outcomes = shadow.mutate(&program, &source.name)?;
            record.add(source, outcomes);
            record.write(&results)?;
        }
    }
    let missing: Vec<_> = part.iter().filter(|source| !record.has(source)).map(|source| source.name.as_str()).collect();
    if !missing.is_empty() {
        bail!("not done as they are now: {}: run `cargo xtask mutate`", missing.join(", "));
    }
    eprintln!("{}", record.summary(&part));
    let unexplained = record.unexplained(&part);
    if !unexplained.is_empty() {
        bail!(
            "no test notices these mutants: add one, or say in {} why the mutant changes no decision (`why`):\n  {}",
            results.display(),
            unexplained.join("\n  ")
        );
    }
    Ok(())
}

impl Choice {
    fn takes(&self, name: &str) -> bool {
        self.file.is_empty() || self.file.iter().any(|pattern| matches(pattern, name))
    }
}

/// `*` stands for anything, also for what lies below a directory.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

fn parse_shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(index, parts)| Some((index.parse().ok()?, parts.parse().ok()?)));
    parts.filter(|(index, parts)| (1..=*parts).contains(index)).ok_or_else(|| "not K/N with 1 <= K <= N".to_owned())
}

impl Shadow {
    /// Breaks one file in every way, and runs the tests each time: first the quick ones, then all for what they miss.
    fn mutate(&self, program: &Path, name: &str) -> Result<Vec<Outcome>> {
        let output = self.directory.join("out");
        if output.exists() {
            fs::remove_dir_all(&output).with_context(|| format!("cannot remove {}", output.display()))?;
        }
        let mut outcomes = self.try_mutants(program, name, &output, Effort::Quick)?;
        if outcomes.iter().any(|outcome| outcome.fate == Fate::Missed) {
            // What ran out of time is tried again as well.
            outcomes.retain(|outcome| !matches!(outcome.fate, Fate::Missed | Fate::TimedOut));
            outcomes.extend(self.try_mutants(program, name, &output, Effort::Thorough)?);
            outcomes.sort_by_key(|outcome| outcome.line);
        }
        Ok(outcomes)
    }

    /// What came of the mutants that an earlier run with the same output has not caught.
    fn try_mutants(&self, program: &Path, name: &str, output: &Path, effort: Effort) -> Result<Vec<Outcome>> {
        let mut mutants = Command::new(program);
        mutants
            .args(["mutants", "--in-place", "--iterate", "--baseline", "skip", "--timeout", effort.timeout_seconds()])
            .args(["--no-shuffle", "--colors", "never", "--cap-lints", "true", "--profile", effort.profile()])
            .args(["--file", &format!("src/core/{name}"), "--output"])
            .arg(output)
            .arg("--")
            .args(effort.test_arguments())
            .current_dir(&self.directory);
        // Mutants that no test notices are a result, and so an error status is none.
        let said = process::run(&mut mutants);
        let outcomes = output.join("mutants.out/outcomes.json");
        match fs::read_to_string(&outcomes) {
            Ok(text) => outcome::parse(&text),
            Err(_) if said.is_ok() => Ok(Vec::new()), // there is nothing in it to break
            Err(error) => {
                said?;
                Err(error).with_context(|| format!("cargo-mutants has left no {}", outcomes.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_what_it_says() {
        for (pattern, name, takes) in [
            ("quiet.rs", "quiet.rs", true),
            ("quiet.rs", "unquiet.rs", false),
            ("confirm/*", "confirm/syncs.rs", true),
            ("confirm/*", "routing/port.rs", false),
            ("*.rs", "routing/port.rs", true),
            ("*/p*.rs", "routing/port.rs", true),
            ("*/q*.rs", "routing/port.rs", false),
        ] {
            assert_eq!(matches(pattern, name), takes, "{pattern} {name}");
        }
    }

    #[test]
    fn a_shard_is_one_of_its_number() {
        assert_eq!(parse_shard("2/4"), Ok((2, 4)));
        for wrong in ["0/4", "5/4", "1/0", "1", "a/b"] {
            assert!(parse_shard(wrong).is_err(), "{wrong}");
        }
    }
}
