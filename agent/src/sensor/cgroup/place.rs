//! The pod's control group: where it is, as far as the agent can see (`cgroups(7)`).

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// The pod's control group.
#[derive(Debug)]
pub(super) struct PodGroup {
    pub(super) path: PathBuf,
    pub(super) directory: File,
}

/// It is not to be had.
#[derive(Debug, thiserror::Error)]
pub enum PodGroupError {
    /// No right, or no `/proc`.
    #[error("cannot read {path}, which names the agent's control group: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// Only version 1.
    #[error("the node has no control groups of version 2 that the agent sees")]
    NoVersion2,
    /// In a control group namespace of its own, the agent sees nothing above itself.
    #[error(
        "the agent's control group {0:?} is in none of a pod (kubelet's names hold `pod` and the pod's UID): the container sees nothing above itself unless it is privileged, or has the node's /sys/fs/cgroup and its /proc mounted"
    )]
    NotInAPod(String),
}

impl PodGroup {
    /// The group of the pod that the process is in.
    pub(super) fn find() -> Result<Self, PodGroupError> {
        let own = read("/proc/self/cgroup")?;
        let mounts = read("/proc/self/mountinfo")?;
        let own = own_group(&own).ok_or(PodGroupError::NoVersion2)?;
        let pod = pods_group(own).ok_or_else(|| PodGroupError::NotInAPod(own.to_owned()))?;
        let path = below_mount(&mounts, pod).ok_or(PodGroupError::NoVersion2)?;
        let directory = File::open(&path).map_err(|source| PodGroupError::Read { path: path.clone(), source })?;
        Ok(Self { path, directory })
    }
}

fn read(path: &'static str) -> Result<String, PodGroupError> {
    std::fs::read_to_string(path).map_err(|source| PodGroupError::Read { path: path.into(), source })
}

/// The line of version 2 in `/proc/PID/cgroup`.
fn own_group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The innermost group that is a pod's: `pod` and its UID, whose dashes are underscores where systemd makes the group
/// (`podCgroupNamePrefix` in `pkg/kubelet/cm/pod_container_manager_linux.go`).
fn pods_group(own: &str) -> Option<&Path> {
    Path::new(own).ancestors().find(|group| {
        let name = group.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.strip_suffix(".slice").unwrap_or(name);
        let uid = name.rsplit_once("pod").map_or("", |(_, uid)| uid);
        // A static pod's UID is a digest of 32 digits.
        let digits = uid.chars().filter(char::is_ascii_hexdigit).count();
        digits == 32 && uid.chars().all(|letter| letter.is_ascii_hexdigit() || matches!(letter, '-' | '_'))
    })
}

/// Where a group is in the file system, by `/proc/PID/mountinfo` (`proc(5)`).
fn below_mount(mounts: &str, group: &Path) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, at) = (fields.next()?, fields.next()?);
        Some(Path::new(at).join(group.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

    #[test]
    fn the_innermost_pod_is_found_among_the_ancestors() {
        let cgroupfs = format!("/kubepods/burstable/pod{UID}/4f5e");
        assert_eq!(pods_group(&cgroupfs), Some(Path::new(&format!("/kubepods/burstable/pod{UID}"))));
        let slice = format!("/kubepods.slice/kubepods-pod{}.slice", UID.replace('-', "_"));
        let systemd = format!("{slice}/cri-containerd-4f5e.scope/nested");
        assert_eq!(pods_group(&systemd), Some(Path::new(&slice)));
        let outer = format!("/kubepods/pod{UID}/inner");
        let nested = format!("{outer}/kubepods/pod{}/x", UID.replace('a', "b"));
        assert_eq!(pods_group(&nested), Some(Path::new(&format!("{outer}/kubepods/pod{}", UID.replace('a', "b")))));
        for none in ["/", "/system.slice/podman.service", "/user.slice/pod1", "/kubepods"] {
            assert_eq!(pods_group(none), None, "{none}");
        }
    }

    #[test]
    fn the_line_of_version_2_is_taken() {
        assert_eq!(own_group("12:pids:/a\n0::/b/c\n"), Some("/b/c"));
        assert_eq!(own_group("12:pids:/a\n"), None);
    }

    #[test]
    fn a_group_is_found_below_the_mount_that_shows_it() {
        let mounts = "29 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup cgroup rw\n\
                      30 24 0:27 /kubepods /host/cgroup rw,nosuid shared:5 - cgroup2 cgroup2 rw\n";
        assert_eq!(below_mount(mounts, Path::new("/kubepods/x")), Some("/host/cgroup/x".into()));
        assert_eq!(below_mount(mounts, Path::new("/elsewhere")), None);
    }
}
