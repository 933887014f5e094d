//! Removing what a lab's process that was killed left behind. The names carry the process id: only what belongs to no
//! running process goes.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{self, Command},
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::{control_group, host, lab::PREFIX, programs, wait::await_condition};

/// Removes the namespaces (with their processes), control groups and directories of dead processes' labs, and those of an earlier process
/// that had this one's id. To be called before this process makes its first lab.
pub(crate) fn sweep() -> Result<()> {
    for name in abandoned(Path::new(host::NAMESPACES))? {
        remove_namespace(&name)?;
    }
    if let Some(groups) = control_group::mount() {
        for name in abandoned(&groups)? {
            control_group::remove(&groups.join(name))?;
        }
    }
    let directory = std::env::temp_dir();
    for name in abandoned(&directory)? {
        let path = directory.join(name);
        fs::remove_dir_all(&path).or_else(ignore_absence).with_context(|| format!("{} stays", path.display()))?;
    }
    Ok(())
}

/// Ends every process in a namespace and removes its name, upon which the kernel takes the namespace down.
pub(crate) fn remove_namespace(name: &str) -> Result<()> {
    let path = host::path_of(name);
    if let Ok(namespace) = fs::metadata(&path) {
        end_processes(&namespace).with_context(|| format!("processes stay in the namespace {name}"))?;
    }
    let removal = Command::new(programs::find("ip")?).args(["netns", "delete", name]).output();
    let output = removal.context("`ip netns delete` did not run")?;
    anyhow::ensure!(
        output.status.success() || !path.exists(), // beside us another process's lab sweeps the same leftovers
        "the namespace {name} stays: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn end_processes(namespace: &fs::Metadata) -> Result<()> {
    // A process that is being started may be found only at the second look.
    await_condition("the end of its processes", std::time::Duration::from_secs(5), || {
        let mut none = true;
        for pid in processes_in(namespace) {
            none = false;
            // It may have ended by itself since.
            kill_process(pid, Signal::KILL).ok();
        }
        none
    })
}

fn processes_in(namespace: &fs::Metadata) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&id| id != process::id())
        .filter(|id| {
            // A zombie has no namespace any more, so what waits to be reaped does not count.
            fs::metadata(format!("/proc/{id}/ns/net"))
                .is_ok_and(|of| (of.dev(), of.ino()) == (namespace.dev(), namespace.ino()))
        })
        .filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?))
        .collect()
}

/// The names in a directory that a lab gave and whose process is gone.
fn abandoned(directory: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", directory.display())),
    };
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| owner_of(name).is_some_and(|id| id == process::id() || !is_running(id)))
        .collect())
}

/// The process id in a name such as `lastsyn-lab-4711-0-client`.
fn owner_of(name: &str) -> Option<u32> {
    let (id, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    rest.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
    id.parse().ok()
}

fn is_running(id: u32) -> bool {
    i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

fn ignore_absence(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::owner_of;

    #[test]
    fn a_name_tells_its_process() {
        assert_eq!(owner_of("lastsyn-lab-4711-0-client"), Some(4711));
        assert_eq!(owner_of("lastsyn-lab-4711-0-x9Qw"), Some(4711));
        for foreign in
            ["lastsyn-lab-4711", "lastsyn-lab-notes-1", "lastsyn-lab-12-client", "lastsyn-12-0", "12-0-client"]
        {
            assert_eq!(owner_of(foreign), None, "{foreign}");
        }
    }
}
