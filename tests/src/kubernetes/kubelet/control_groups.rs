//! The control groups of a kubelet, and those below which it makes those of its pods.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{control_group, wait::await_condition};

const MOUNT: &str = "/sys/fs/cgroup";
const PROCESSES: &str = "cgroup.procs";
/// How long the kernel may take to empty the groups of processes that were killed.
const EMPTY: Duration = Duration::from_secs(10);

/// One group of a name in every hierarchy, for pods; and one for the kubelet itself. Dropped, they are gone, with all below
/// them.
#[derive(Debug)]
pub(super) struct ControlGroups {
    path: String,
    directories: Vec<PathBuf>,
    /// In the hierarchy of version 2, where there is one.
    own: Option<Own>,
}

/// What is as on a node whose only hierarchy is that of version 2: the kubelet in a group of its own, beside that of the
/// pods. A runtime that manages groups of version 1 puts nothing there.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// Writing a 0 there moves the writer to the kubelet's group.
    pub(super) kubelet: PathBuf,
    /// The same for the group of the pods.
    pub(super) pods: PathBuf,
}

// === impl ControlGroups ===

impl ControlGroups {
    pub(super) fn new(name: &str) -> Result<Self> {
        let mut groups = Self { path: format!("/{name}"), directories: Vec::new(), own: None };
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
        if let Some(mount) = control_group::mount() {
            let (node, pods) = (mount.join(format!("{name}-node")), mount.join(name).join("pods"));
            groups.directories.push(node.clone());
            let kubelet = node.join("kubelet");
            for directory in [&kubelet, &pods] {
                fs::create_dir_all(directory).with_context(|| format!("{} was not made", directory.display()))?;
            }
            groups.own = Some(Own { kubelet: kubelet.join(PROCESSES), pods: pods.join(PROCESSES) });
        }
        Ok(groups)
    }

    /// Where the kubelet and the processes of pods are to be.
    pub(super) fn own(&self) -> Option<&Own> {
        self.own.as_ref()
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
