//! What came of each file, as committed: `results/mutants-core.json`.

use std::{collections::BTreeMap, fs, io, path::Path};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::outcome::{Fate, Outcome};
use crate::{setup::cargo_program::MUTANTS, shadow::Source};

/// All files that were done.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Record {
    /// What made the mutants.
    tool: String,
    files: BTreeMap<String, File>,
}

/// What came of one file.
#[derive(Debug, Default, Deserialize, Serialize)]
struct File {
    /// Of its text, as it was then.
    digest: String,
    caught: usize,
    timed_out: usize,
    /// These do not compile.
    unviable: usize,
    /// No test noticed these.
    survivors: Vec<Survivor>,
}

/// A mutant that no test noticed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Survivor {
    line: u64,
    mutation: String,
    /// Why it changes no decision; written by a person.
    #[serde(default)]
    why: String,
}

impl Record {
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => {
                serde_json::from_str(&text).with_context(|| format!("{} is not what this verb writes", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("the results cannot be written as JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// Files that are no more have no results.
    pub(super) fn forget_all_but(&mut self, sources: &[Source]) {
        self.files.retain(|name, _| sources.iter().any(|source| source.name == *name));
    }

    /// Whether the file was done as it is now.
    pub(super) fn has(&self, source: &Source) -> bool {
        self.files.get(&source.name).is_some_and(|file| file.digest == source.digest)
    }

    /// Takes over what came of a file. A survivor that was there before keeps its reason.
    pub(super) fn add(&mut self, source: &Source, outcomes: Vec<Outcome>) {
        MUTANTS.version.clone_into(&mut self.tool);
        let mut before = self.files.remove(&source.name).unwrap_or_default().survivors;
        let mut file = File { digest: source.digest.clone(), ..File::default() };
        for Outcome { mutation, line, fate } in outcomes {
            match fate {
                Fate::Caught => file.caught += 1,
                Fate::TimedOut => file.timed_out += 1,
                Fate::Unviable => file.unviable += 1,
                Fate::Missed => {
                    // Of several that read alike, in the order of their lines.
                    let known = before.iter().position(|survivor| survivor.mutation == mutation);
                    let why = known.map(|index| before.remove(index).why).unwrap_or_default();
                    file.survivors.push(Survivor { line, mutation, why });
                }
            }
        }
        self.files.insert(source.name.clone(), file);
    }

    pub(super) fn summary(&self, sources: &[&Source]) -> String {
        let files = || sources.iter().filter_map(|source| self.files.get(&source.name));
        let sum = |of: fn(&File) -> usize| files().map(of).sum::<usize>();
        format!(
            "{} files: {} mutants caught, {} timed out, {} do not compile, {} survive",
            files().count(),
            sum(|file| file.caught),
            sum(|file| file.timed_out),
            sum(|file| file.unviable),
            sum(|file| file.survivors.len())
        )
    }

    /// Survivors of which nobody has said why they change no decision.
    pub(super) fn unexplained(&self, sources: &[&Source]) -> Vec<String> {
        let files = sources.iter().filter_map(|source| self.files.get_key_value(&source.name));
        let survivors = files.flat_map(|(name, file)| file.survivors.iter().map(move |survivor| (name, survivor)));
        let unexplained = survivors.filter(|(_, survivor)| survivor.why.is_empty());
        unexplained.map(|(name, Survivor { line, mutation, .. })| format!("{name}:{line}: {mutation}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(digest: &str) -> Source {
        Source { name: "quiet.rs".to_owned(), digest: digest.to_owned() }
    }

    fn missed(line: u64, mutation: &str) -> Outcome {
        Outcome { mutation: mutation.to_owned(), line, fate: Fate::Missed }
    }

    #[test]
    fn a_survivor_keeps_its_reason_at_another_line_and_a_new_one_has_none() {
        let mut record = Record::default();
        record.add(&source("1"), vec![missed(7, "replace > with >=")]);
        assert_eq!(record.unexplained(&[&source("1")]), ["quiet.rs:7: replace > with >="]);
        record.files.get_mut("quiet.rs").unwrap().survivors[0].why = "equal times are one".to_owned();
        record.add(&source("2"), vec![missed(9, "replace > with >="), missed(12, "replace > with >=")]);
        assert!(record.has(&source("2")) && !record.has(&source("1")));
        assert_eq!(record.unexplained(&[&source("2")]), ["quiet.rs:12: replace > with >="]);
        assert!(record.summary(&[&source("2")]).contains("2 survive"));
    }

    #[test]
    fn what_was_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        assert!(Record::read(&path).unwrap().files.is_empty());
        let mut record = Record::default();
        record.add(&source("1"), vec![missed(7, "replace > with >=")]);
        record.write(&path).unwrap();
        let read = Record::read(&path).unwrap();
        assert!(read.has(&source("1")));
        fs::write(&path, "[]").unwrap();
        assert!(Record::read(&path).is_err());
    }
}
