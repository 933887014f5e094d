//! The control groups below which a kubelet makes those of its pods.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::wait::await_condition;

const MOUNT: &str = "/sys/fs/cgroup";
/// How long the kernel may take to empty the groups of processes that were killed.
const EMPTY: Duration = Duration::from_secs(10);

/// One group of a name in every hierarchy. Dropped, they are gone, with all below them.
#[derive(Debug)]
pub(super) struct ControlGroups {
    path: String,
    directories: Vec<PathBuf>,
}

// === impl ControlGroups ===

impl ControlGroups {
    pub(super) fn new(name: &str) -> Result<Self> {
        let mut groups = Self { path: format!("/{name}"), directories: Vec::new() };
        for hierarchy in hierarchies()? {
            let directory = hierarchy.join(name);
            fs::create_dir(&directory).with_context(|| format!("{} was not made", directory.display()))?;
            groups.directories.push(directory);
        }
        // Version 1: a group without processors and memory of its own takes no process.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let of = |directory: &Path| fs::read_to_string(directory.join(file));
            for directory in &groups.directories {
                if let Some(Ok(inherited)) = directory.parent().map(of) {
                    fs::write(directory.join(file), inherited.trim()).ok(); // version 2 has them by itself
                }
            }
        }
        Ok(groups)
    }

    /// The name by which a kubelet is told of them.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        for directory in &self.directories {
            if let Err(error) = await_condition("an empty control group", EMPTY, || remove(directory).is_ok()) {
                eprintln!("{} stays: {error:#}", directory.display());
            }
        }
    }
}

/// Every mounted hierarchy; the only one of version 2 where there is no other.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("mounts cannot be read")?;
    Ok(mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (directory, kind) = (fields.nth(1)?, fields.next()?);
            (kind == "cgroup" || kind == "cgroup2").then(|| PathBuf::from(directory))
        })
        .filter(|directory| directory.starts_with(MOUNT))
        .collect())
}

/// Groups are removed from below; their files go with them.
fn remove(directory: &Path) -> io::Result<()> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => {
            for entry in entries? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    remove(&entry.path())?;
                }
            }
        }
    }
    fs::remove_dir(directory)
}
