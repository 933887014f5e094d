//! Figures that have a limit: what a measurement leaves in a file for the table of all of them.

use std::{fs, io::Write};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::report::machine;
use crate::prove::results;

/// The figures of one measurement.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<Value>);

impl Figures {
    /// Adds one: what it is of, its unit, and the most that the design allows, if it says.
    pub(super) fn add(&mut self, what: impl Into<String>, figure: f64, unit: &str, most: Option<f64>) {
        let what: String = what.into();
        let reached = most.map(|most| figure <= most);
        self.0.push(json!({ "what": what, "figure": rounded(figure), "unit": unit, "most": most, "reached": reached }));
    }

    /// Prints the table and writes the file `results/NAME.json`.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub(super) fn publish(&self, name: &str, setting: &Value) -> Result<()> {
        let mut output = std::io::stdout().lock();
        for figure in &self.0 {
            writeln!(output, "{}", row(figure))?;
        }
        let path = results().join(name).with_extension("json");
        let text = format!("{:#}\n", json!({ "setting": setting, "machine": machine(), "figures": self.0 }));
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// A figure as a row of a table in Markdown.
pub(super) fn row(figure: &Value) -> String {
    let text = |key: &str| match figure.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let reached = match figure.get("reached") {
        Some(Value::Bool(true)) => "yes",
        Some(Value::Bool(false)) => "no",
        _ => "",
    };
    format!("| {} | {} {} | {} | {reached} |", text("what"), text("figure"), text("unit"), text("most"))
}

/// Three significant digits are more than any of these can promise.
fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_whether_the_limit_is_kept() {
        let mut figures = Figures::default();
        figures.add("a", 1.23456, "times", Some(1.2));
        figures.add("b", 1.2, "times", Some(1.2));
        figures.add("c", 7.0, "ms", None);
        let rows: Vec<_> = figures.0.iter().map(row).collect();
        assert_eq!(rows, ["| a | 1.235 times | 1.2 | no |", "| b | 1.2 times | 1.2 | yes |", "| c | 7.0 ms |  |  |"]);
    }
}
