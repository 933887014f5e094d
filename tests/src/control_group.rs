//! Control groups of version 2, named as kubelet names those of pods.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use anyhow::{Context, Result};

use crate::{Lab, wait::await_condition};

/// Processes that were killed leave their group some time after they have been reaped.
const PATIENCE: Duration = Duration::from_secs(5);

/// The control group of a pod, with one inside for each container. It and its groups go when it is dropped; the processes in
/// them are to have ended by then.
#[derive(Debug)]
pub struct PodGroup {
    outer: PathBuf,
    pod: PathBuf,
}

impl PodGroup {
    /// Makes the group of another pod of the lab.
    ///
    /// # Errors
    ///
    /// When the machine has no control groups of version 2, or lets none be made.
    pub fn new(lab: &Lab) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mount = mount().context("no control groups of version 2 are mounted here")?;
        let outer = mount.join(format!("{}-{number}", lab.name()));
        let pod = outer.join(format!("pod0a1b2c3d-4e5f-6071-8293-{number:012x}"));
        fs::create_dir_all(&pod).with_context(|| format!("{} could not be made", pod.display()))?;
        Ok(Self { outer, pod })
    }

    /// The group's directory.
    pub fn path(&self) -> &Path {
        &self.pod
    }

    /// What starts a program in the group of a container of the pod, which is made where there is none: the beginning of a
    /// command.
    ///
    /// # Errors
    ///
    /// When the group cannot be made.
    pub fn container(&self, name: &str) -> Result<Vec<String>> {
        let group = self.pod.join(name);
        fs::create_dir_all(&group).with_context(|| format!("{} could not be made", group.display()))?;
        let enter = format!("echo $$ > '{}' && exec \"$@\"", group.join("cgroup.procs").display());
        Ok(["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec())
    }
}

impl Drop for PodGroup {
    fn drop(&mut self) {
        if let Err(error) = await_condition("the end of a control group", PATIENCE, || remove(&self.outer).is_ok()) {
            eprintln!("{error:#}");
        }
    }
}

/// Moves the calling process to the root group, where nothing tells one process from another.
///
/// # Errors
///
/// When the machine has no control groups of version 2, or does not let it go there.
pub fn enter_root() -> Result<()> {
    let group = mount().context("no control groups of version 2 are mounted here")?.join("cgroup.procs");
    fs::write(&group, std::process::id().to_string()).with_context(|| format!("{} did not take it", group.display()))
}

/// Where control groups of version 2 are mounted.
pub(crate) fn mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, kind) = (fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| at.into())
    })
}

/// Removes a group with those inside.
pub(crate) fn remove(group: &Path) -> Result<()> {
    let entries = match fs::read_dir(group) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group).with_context(|| format!("{} stays", group.display()))
}
