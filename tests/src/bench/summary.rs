//! The table of all figures in `docs/performance.md`, made anew from what the measurements left in `results`.

use std::{fs, io::Write, path::PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::figures::row;
use crate::prove::results;

/// The measurements that have figures, in the order of the table.
const FIGURED: &[(&str, &str)] = &[
    ("packet-cost", "Each packet, in the kernel"),
    ("footprint", "Memory, processor, start"),
    ("flood", "A flood of SYNs into the watched port"),
    ("pollers", "How late loops notice the end that are in use elsewhere"),
];
const BEGIN: &str = "<!-- figures: begin (written by `cargo xtask bench`) -->\n";
const END: &str = "<!-- figures: end -->";

/// Writes the table into the page, and to standard output if that is asked for.
///
/// # Errors
///
/// When a file cannot be read or written, or the page has lost the place of the table.
pub(super) fn write(print: bool) -> Result<()> {
    let mut table = String::new();
    for (name, title) in FIGURED {
        if let Some(measured) = measured(name)? {
            table += &section(name, title, &measured);
        }
    }
    if print {
        write!(std::io::stdout().lock(), "\n{table}")?;
    }
    let page = results().join("../docs/performance.md");
    let text = fs::read_to_string(&page).with_context(|| format!("{} cannot be read", page.display()))?;
    let text = replaced(&text, &table).with_context(|| format!("{} has no place for the table", page.display()))?;
    fs::write(&page, text).with_context(|| format!("{} cannot be written", page.display()))
}

fn measured(name: &str) -> Result<Option<Value>> {
    let path: PathBuf = results().join(name).with_extension("json");
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?))
}

fn section(name: &str, title: &str, measured: &Value) -> String {
    let machine = |key| match measured.pointer(&format!("/machine/{key}")) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "?".to_owned(),
    };
    let load = machine("loadAverageAtTheEnd");
    let load = load.split(' ').next().unwrap_or("?");
    let figures = measured.get("figures").and_then(Value::as_array).into_iter().flatten();
    let rows: String = figures.map(|figure| row(figure) + "\n").collect();
    format!(
        "{title}: `cargo xtask bench {name}`; Linux {}, {} processors, {} build, load average at the end {load}.\n\n\
         | | figure | at most | reached |\n| --- | --- | --- | --- |\n{rows}\n",
        machine("kernel"),
        machine("cpus"),
        machine("build"),
    )
}

/// The page with another table; none if it has no place for one.
fn replaced(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_old, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_put_in_its_place_again_and_again() {
        let page = format!("a\n{BEGIN}old\n{END}\nb\n");
        let once = replaced(&page, "| new |\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\n| new |\n{END}\nb\n"));
        assert_eq!(replaced(&once, "| new |\n").unwrap(), once);
        assert_eq!(replaced("a page without a place", "| new |\n"), None);
    }
}
