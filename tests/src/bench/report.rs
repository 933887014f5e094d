//! What a measurement leaves: a table for the eye, a file for comparison.

use std::{fs, io::Write};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::distribution::{Distribution, HEAD};
use crate::prove::results;

/// The rows of a measurement.
#[derive(Debug, Default)]
pub(super) struct Report {
    rows: Vec<(&'static str, String, Distribution)>,
}

impl Report {
    /// Adds what was measured: under a name for programs, and in words.
    pub(super) fn row(&mut self, name: &'static str, words: impl Into<String>, times: Distribution) {
        self.rows.push((name, words.into(), times));
    }

    /// Prints the table and writes the file `results/NAME.json`.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(super) fn publish(&self, name: &str, setting: &Value) -> Result<()> {
        let mut output = std::io::stdout().lock();
        let width = self.rows.iter().map(|(_, words, _)| words.len()).max().unwrap_or(0);
        writeln!(output, "{:width$}{:>7}{HEAD}   (ms)", "", "count")?;
        for (_, words, times) in &self.rows {
            writeln!(output, "{words:width$}{:>7}{}", times.count(), times.cells())?;
        }
        let rows: serde_json::Map<String, Value> =
            self.rows.iter().map(|(name, _, times)| ((*name).to_owned(), times.to_json())).collect();
        let path = results().join(name).with_extension("json");
        let text = format!("{}\n", json!({ "setting": setting, "machine": machine(), "results": rows }));
        fs::create_dir_all(results())
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// What the figures depend on.
pub(super) fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    json!({
        "kernel": read("/proc/sys/kernel/osrelease"),
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "loadAverageAtTheEnd": read("/proc/loadavg"),
        "build": if cfg!(debug_assertions) { "debug" } else { "release" },
    })
}
