//! Prometheus and promtool, for the tests that scrape a real agent and read the chart's rules and dashboard. They are kept
//! apart from the system: Debian's package would start a service.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use super::{cache, debian_files};
use crate::process;

/// The oldest suite that is to run the tests: its programs run with the C library of every later one.
const SUITE: &str = "bookworm";
const RELEASE: &str = "2.42";
const PROGRAMS: [&str; 2] = ["usr/bin/prometheus", "usr/bin/promtool"];

/// The directory of both programs, after they have been fetched where they were not there.
pub(crate) fn ensure() -> Result<PathBuf> {
    let directory = cache::directory()?.join(format!("prometheus-{RELEASE}"));
    let stamp = format!("Prometheus {RELEASE} of Debian {SUITE}\n");
    let is_there = || cache::stamp(&directory).as_ref() == Some(&stamp);
    if !is_there() {
        let _lock = cache::lock()?;
        // Another run may have fetched it while this one waited.
        if !is_there() {
            cache::replace(&directory, &stamp, |content| {
                debian_files::fetch(SUITE, &[("prometheus", &PROGRAMS)], content)?;
                let said = process::read(Command::new(content.join("promtool")).arg("--version"));
                let said = said.context("promtool does not run")?;
                if !said.contains(&format!("version {RELEASE}.")) {
                    bail!("Debian {SUITE} has another Prometheus than {RELEASE}: {said:?}");
                }
                Ok(())
            })?;
        }
    }
    Ok(directory)
}
