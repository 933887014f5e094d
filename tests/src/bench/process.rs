//! What a process takes, as the kernel tells it (proc(5)).

use std::{fs, time::Duration};

use anyhow::{Context, Result};

use crate::Process;

/// A line of its `status` in KiB, such as `VmRSS` (what is in memory now) or `VmHWM` (the most that ever was).
///
/// # Errors
///
/// When the process is gone.
pub(super) fn memory(process: &Process, line: &str) -> Result<u64> {
    let path = format!("/proc/{}/status", process.pid().as_raw_nonzero());
    let text = fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
    let found = text.lines().find_map(|candidate| candidate.strip_prefix(line)?.strip_prefix(':'));
    let number = found.and_then(|rest| rest.split_whitespace().next()).with_context(|| format!("no {line}"))?;
    number.parse().with_context(|| format!("{line} is `{number}`"))
}

/// How much of the processors it has had, in all its threads.
///
/// # Errors
///
/// When the process is gone.
pub(super) fn processor_time(process: &Process) -> Result<Duration> {
    let directory = format!("/proc/{}/task", process.pid().as_raw_nonzero());
    let mut nanos = 0;
    for task in fs::read_dir(&directory).with_context(|| format!("{directory} cannot be read"))? {
        let path = task?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        nanos += text.split_whitespace().next().context("an empty schedstat")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}
