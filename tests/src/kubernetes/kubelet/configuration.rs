//! The files that containerd, its network plugin and a kubelet are configured by.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;

use super::{control_groups::ControlGroups, image::PAUSE_IMAGE};
use crate::kubernetes::{Node, addresses::pod_ranges, binaries};

/// Below the kubelet's directory: what containers write.
const LOGS: &str = "logs";

/// Where they are.
pub(super) struct Files {
    pub(super) containerd: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) images: PathBuf,
    pub(super) kubelet: PathBuf,
    pub(super) root: PathBuf,
    pub(super) logs: PathBuf,
}

// === impl Files ===

impl Files {
    /// Writes them for a node.
    pub(super) fn write(directory: &Path, node: &Node, authority: &Path, groups: &ControlGroups) -> Result<Self> {
        let make = |name: &str| -> Result<PathBuf> {
            let path = directory.join(name);
            fs::create_dir_all(&path).with_context(|| format!("{} was not made", path.display()))?;
            Ok(path)
        };
        let write = |path: PathBuf, text: String| -> Result<PathBuf> {
            fs::write(&path, text).with_context(|| format!("{} was not written", path.display()))?;
            Ok(path)
        };
        let (images, root, networks) = (make("images")?, make("root")?, make("networks")?);
        let socket = directory.join("containerd.sock");
        let runtime = binaries::find_runtime("runc")?;
        let runtime = match groups.own() {
            Some(own) => starts_among_pods(directory, &own.pods, &runtime)?,
            None => runtime,
        };
        let containerd = containerd(directory, &socket, &networks, &runtime)?;
        write(networks.join("10-lab.conflist"), network(node, directory))?;
        Ok(Self {
            containerd: write(directory.join("containerd.toml"), containerd)?,
            kubelet: write(directory.join("kubelet.json"), kubelet(directory, &socket, authority, groups.path()))?,
            socket,
            images,
            root,
            logs: directory.join(LOGS),
        })
    }
}

/// The runtime, which moves itself to the control group of the pods before it makes one of their processes.
fn starts_among_pods(directory: &Path, group: &Path, runtime: &Path) -> Result<PathBuf> {
    let script = directory.join("runc");
    let text = format!("#!/bin/sh\necho 0 > '{}'\nexec '{}' \"$@\"\n", group.display(), runtime.display());
    fs::write(&script, text).with_context(|| format!("{} was not written", script.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("{} was not made executable", script.display()))?;
    Ok(script)
}

fn containerd(directory: &Path, socket: &Path, networks: &Path, runtime: &Path) -> Result<String> {
    let programs = binaries::runtime_directory()?;
    let (directory, socket, networks, programs, runtime) =
        (directory.display(), socket.display(), networks.display(), programs.display(), runtime.display());
    // A sandbox's `oom_score_adj` of -998 needs a capability that the lab may not have.
    Ok(format!(
        "version = 2
root = \"{directory}/containerd\"
state = \"{directory}/containerd-state\"
[grpc]
address = \"{socket}\"
[ttrpc]
address = \"{socket}.ttrpc\"
[plugins.\"io.containerd.grpc.v1.cri\"]
sandbox_image = \"{PAUSE_IMAGE}\"
restrict_oom_score_adj = true
[plugins.\"io.containerd.grpc.v1.cri\".cni]
bin_dir = \"{programs}\"
conf_dir = \"{networks}\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd]
snapshotter = \"overlayfs\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
runtime_type = \"io.containerd.runc.v2\"
[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]
BinaryName = \"{runtime}\"
SystemdCgroup = false
"
    ))
}

/// A wire from each pod to the node, routed, over both families: what the lab makes for pods without a kubelet.
fn network(node: &Node, directory: &Path) -> String {
    let ranges = pod_ranges(node.number).map(|range| json!([{"subnet": range}]));
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "dataDir": directory.join("addresses"),
                "ranges": ranges,
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
            },
        }],
    })
    .to_string()
}

fn kubelet(directory: &Path, socket: &Path, authority: &Path, control_group: &str) -> String {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false}, "webhook": {"enabled": false}, "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": format!("unix://{}", socket.display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": control_group,
        "failCgroupV1": false,
        "failSwapOn": false,
        "enforceNodeAllocatable": ["none"],
        "makeIPTablesUtilChains": false,
        "localStorageCapacityIsolation": false,
        "resolvConf": "",
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": directory.join(LOGS),
        "volumePluginDir": directory.join("plugins"),
        "registerNode": true,
        // What is deleted is to be seen at once.
        "syncFrequency": "5s",
        "nodeStatusUpdateFrequency": "2s",
    })
    .to_string()
}
