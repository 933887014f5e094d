//! The record of a long proof: one line of JSON for each round, so that a proof that was broken off goes on where it was.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A file of lines, each written whole.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    lines: Vec<Value>,
}

// === impl Record ===

impl Record {
    /// The record `name` in the repository's `results`, with what it holds already.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or a line of it is no JSON.
    pub fn open(name: &str) -> Result<Self> {
        Self::at(results().join(name))
    }

    /// The same as a proof's arguments ask for it: `--again` forgets what it holds, and there is no other.
    ///
    /// # Errors
    ///
    /// As above, and for another argument.
    pub fn asked_for(name: &str, arguments: impl Iterator<Item = String>) -> Result<Self> {
        Self::open(name)?.after(arguments)
    }

    fn after(mut self, arguments: impl Iterator<Item = String>) -> Result<Self> {
        for argument in arguments {
            match argument.as_str() {
                "--again" => self.clear()?,
                other => bail!("unknown argument `{other}`; there is --again, which forgets {}", self.path.display()),
            }
        }
        Ok(self)
    }

    fn at(path: PathBuf) -> Result<Self> {
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| format!("the record {} cannot be read", path.display()))?,
        };
        let lines = text
            .lines()
            .enumerate()
            .map(|(number, line)| {
                serde_json::from_str(line).with_context(|| format!("line {} of {}", number + 1, path.display()))
            })
            .collect::<Result<_>>()?;
        Ok(Self { path, lines })
    }

    /// Forgets what it holds.
    ///
    /// # Errors
    ///
    /// When the file cannot be removed.
    pub fn clear(&mut self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.with_context(|| format!("{} cannot be removed", self.path.display()))?,
        }
        self.lines.clear();
        Ok(())
    }

    /// What it holds.
    pub fn lines(&self) -> &[Value] {
        &self.lines
    }

    /// Adds a line, on the disk when this returns.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn add(&mut self, line: Value) -> Result<()> {
        let write = || -> Result<File> {
            if let Some(directory) = self.path.parent() {
                fs::create_dir_all(directory)?;
            }
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(format!("{line}\n").as_bytes())?;
            Ok(file)
        };
        write()
            .and_then(|file| Ok(file.sync_all()?))
            .with_context(|| format!("{} cannot be written", self.path.display()))?;
        self.lines.push(line);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The directory of results in the repository that this program was built from.
pub(crate) fn results() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).join("results")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/rounds.jsonl");
        let mut record = Record::at(path.clone()).unwrap();
        assert!(record.lines().is_empty());
        record.add(json!({"round": 1})).unwrap();
        record.add(json!({"round": 2})).unwrap();
        assert_eq!(Record::at(path.clone()).unwrap().lines(), [json!({"round": 1}), json!({"round": 2})]);
        fs::write(&path, "{\"round\": 1}\n{\"ro").unwrap();
        assert!(format!("{:#}", Record::at(path.clone()).unwrap_err()).contains("line 2"));
        record.clear().unwrap();
        assert!(Record::at(path).unwrap().lines().is_empty());
    }

    #[test]
    fn only_again_may_be_asked_for_and_it_forgets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rounds.jsonl");
        let after = |argument: &str| Record::at(path.clone()).unwrap().after([argument.to_owned()].into_iter());
        Record::at(path.clone()).unwrap().add(json!({"round": 1})).unwrap();
        assert!(after("--agian").unwrap_err().to_string().contains("--again"));
        assert_eq!(Record::at(path.clone()).unwrap().lines().len(), 1);
        assert!(after("--again").unwrap().lines().is_empty() && !path.exists());
    }
}
