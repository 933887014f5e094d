//! `cargo xtask coverage`: which lines and regions of the decision core its own tests reach.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{
    process,
    setup::{apt, cargo_program::LLVM_COV},
    shadow::{Effort, Shadow},
};

/// In percent, of lines and of regions.
const AT_LEAST: f64 = 95.0;

#[derive(Deserialize)]
struct Report {
    data: Vec<Data>,
}

#[derive(Deserialize)]
struct Data {
    files: Vec<File>,
    totals: Summary,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    lines: Share,
    regions: Share,
}

#[derive(Deserialize)]
struct Share {
    count: u64,
    covered: u64,
    percent: f64,
}

pub(crate) fn run(root: &Path) -> Result<()> {
    let program = LLVM_COV.ensure()?;
    let [coverage, profile] = llvm_programs()?;
    let shadow = Shadow::make(root)?;
    let output = shadow.directory.join("coverage.json");
    let mut measure = Command::new(program);
    measure
        .args(["llvm-cov", "test", "--json", "--ignore-filename-regex", "core/(.*/)?tests/", "--output-path"])
        .arg(&output)
        .args(["--profile", Effort::Thorough.profile()])
        .args(Effort::Thorough.test_arguments())
        .env("LLVM_COV", coverage)
        .env("LLVM_PROFDATA", profile)
        .current_dir(&shadow.directory);
    process::run(&mut measure)?;
    let text = fs::read_to_string(&output).with_context(|| format!("cannot read {}", output.display()))?;
    let report: Report =
        serde_json::from_str(&text).context("cargo-llvm-cov's report is not in the form of its version")?;
    let data = report.data.into_iter().next().context("cargo-llvm-cov's report is empty")?;
    tell(&data);
    let Summary { lines, regions } = data.totals;
    if lines.percent < AT_LEAST || regions.percent < AT_LEAST {
        bail!("less than {AT_LEAST} % of the core's lines or regions are reached by its tests");
    }
    Ok(())
}

/// The files that are not reached whole, the worst first, and all of them together.
fn tell(data: &Data) {
    let mut missed: BTreeMap<(u64, &str), &Summary> = BTreeMap::new();
    for File { filename, summary } in &data.files {
        let name = filename.rsplit_once("src/core/").map_or(filename.as_str(), |(_, name)| name);
        let regions = summary.regions.count.saturating_sub(summary.regions.covered);
        if regions > 0 {
            missed.insert((u64::MAX - regions, name), summary);
        }
    }
    for ((_, name), summary) in missed {
        let regions = summary.regions.count.saturating_sub(summary.regions.covered);
        eprintln!(
            "{name:<32} lines {:>6.2} %  regions {:>6.2} %, {regions} missed",
            summary.lines.percent, summary.regions.percent
        );
    }
    let Summary { lines, regions } = &data.totals;
    eprintln!(
        "lines {:.2} % ({} of {}), regions {:.2} % ({} of {})",
        lines.percent, lines.covered, lines.count, regions.percent, regions.covered, regions.count
    );
}

/// LLVM's own programs, of the version that the compiler has: others cannot read what it writes.
fn llvm_programs() -> Result<[std::path::PathBuf; 2]> {
    let version = process::read(Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("LLVM version: "));
    let major = line.and_then(|version| version.split('.').next()).context("rustc -vV names no LLVM version")?;
    let names = ["llvm-cov", "llvm-profdata"].map(|name| format!("{name}-{major}"));
    if names.iter().any(|name| process::find_program(name).is_none()) {
        apt::install(&[&format!("llvm-{major}")])?;
    }
    let find = |name: &String| process::find_program(name).with_context(|| format!("there is no {name}"));
    let [coverage, profile] = &names;
    Ok([find(coverage)?, find(profile)?])
}
