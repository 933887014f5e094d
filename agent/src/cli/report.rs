//! `lastsyn report FILE`: what came of a drain, as text or as a page.

use std::{
    fs,
    io::{self, Read},
    path::PathBuf,
};

use clap::ArgMatches;

use super::{
    exit::Exit,
    output::{remark, result},
};
use crate::{
    observe::{self, Observation},
    report::{Report, find, html, text},
};

/// More than any log of one pod's agent; a file that is larger is another.
const MOST: u64 = 256 * 1024 * 1024;

pub(super) fn main(matches: &ArgMatches) -> Exit {
    let Some(file) = matches.get_one::<PathBuf>("file") else { return Exit::Usage };
    let read = match read(file) {
        Ok(read) => read,
        Err(error) => {
            remark(format_args!("report: {} cannot be read: {error}", file.display()));
            return Exit::Failed;
        }
    };
    let log = String::from_utf8_lossy(&read);
    let reports = find::reports(&log);
    let observations = observe::find::observations(&log);
    if reports.is_empty() && !observations.is_empty() {
        return observed(&observations, matches.get_one::<PathBuf>("html").is_some());
    }
    let Some(last) = reports.last() else {
        remark(format_args!(
            "report: no drain's report is in {}; it is in the agent's log when a drain has ended, and in GET /v1/report",
            file.display()
        ));
        return Exit::Failed;
    };
    let all = matches.get_flag("all");
    if !all && reports.len() > 1 {
        remark(format_args!(
            "report: of {} drains, the last one; --all shows every one of them as text",
            reports.len()
        ));
    }
    match matches.get_one::<PathBuf>("html") {
        Some(to) => page(last, to),
        None if all => {
            result(reports.iter().map(text::text).collect::<Vec<_>>().join("\n\n").trim_end());
            Exit::Done
        }
        None => {
            result(text::text(last).trim_end());
            Exit::Done
        }
    }
}

/// What agents with `mode: observe` have seen.
fn observed(observations: &[Observation], page: bool) -> Exit {
    if page {
        remark("report: there is no page of what was observed; it is text");
        return Exit::Usage;
    }
    let mut text: Vec<String> = observations.iter().map(observe::text::text).collect();
    if observations.len() > 1 {
        text.extend(observe::text::together(observations));
    }
    result(text.join("\n").trim_end());
    Exit::Done
}

fn page(report: &Report, to: &PathBuf) -> Exit {
    let page = html::page(report);
    if to.as_os_str() == "-" {
        result(page.trim_end());
        return Exit::Done;
    }
    match fs::write(to, page) {
        Ok(()) => {
            result(format_args!("wrote {}", to.display()));
            Exit::Done
        }
        Err(error) => {
            remark(format_args!("report: {} cannot be written: {error}", to.display()));
            Exit::Failed
        }
    }
}

fn read(file: &PathBuf) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().take(MOST).read_to_end(&mut read)?;
    } else {
        fs::File::open(file)?.take(MOST).read_to_end(&mut read)?;
    }
    Ok(read)
}
