//! A real kubelet with containerd and runc, on a node of its own.
//!
//! Both run in one process-id and mount namespace, whose first process is a shell. When that ends, the kernel ends all
//! containers and undoes all mounts, so that nothing is left of them. Their control groups are below one that has the
//! lab's name; that of the kubelet is beside it.

mod configuration;
mod control_groups;
mod image;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use serde_json::Value;

use self::{configuration::Files, control_groups::ControlGroups};
use super::{Api, Node, binaries, control_plane};
use crate::{Process, wait::await_condition};

pub(crate) use self::image::ENVOY_IMAGE;
pub use self::image::{AGENT_IMAGE, WEB_IMAGE};

/// From its start until its node is ready: images are imported, and the kubelet looks at its runtime every few seconds.
const START: Duration = Duration::from_mins(1);

/// What the first process does. Everything that would be left on the machine is hidden behind file systems of its own.
const INIT: &str = "set -e
[ -z \"$9\" ] || echo 0 > \"$9\"
mount --make-rshared /
for directory in /run /var/lib /var/log; do mount -t tmpfs lab $directory; done
containerd --config \"$1\" &
until ctr --address \"$2\" version >/dev/null 2>&1; do sleep 0.05; done
for image in \"$3\"/*.tar; do ctr --address \"$2\" --namespace k8s.io images import --local \"$image\"; done
kubelet --config \"$4\" --kubeconfig \"$5\" --hostname-override \"$6\" --node-ip \"$7\" --root-dir \"$8\" --cert-dir \"$8\" &
wait";

/// A kubelet that has made its node ready.
#[derive(Debug)]
pub struct Kubelet {
    process: Process,
    logs: PathBuf,
    _control_groups: ControlGroups,
}

// === impl Kubelet ===

impl Kubelet {
    /// Starts it on a node whose object exists, and waits until that is ready.
    pub(super) fn start(
        api: &Api,
        node: &Node,
        authority: &std::path::Path,
        kubeconfig: &std::path::Path,
        envoy: bool,
    ) -> Result<Self> {
        let host = node.host();
        let control_groups = ControlGroups::new(host.name())?;
        let directory = host.directory().join("kubelet");
        let files = Files::write(&directory, node, authority, &control_groups)?;
        image::write_all(&files.images, envoy)?;
        let mut command = host.command("unshare")?;
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"])
            .args(["sh", "-c", INIT, "init"])
            .args([&files.containerd, &files.socket, &files.images, &files.kubelet])
            .arg(kubeconfig)
            .arg(node.name())
            .arg(node.addresses().map(|address| address.to_string()).join(","))
            .arg(&files.root)
            .arg(control_groups.own().map(|own| own.kubelet.as_os_str()).unwrap_or_default())
            .env_clear()
            .env("PATH", search_path()?);
        let process = Process::start(format!("kubelet and containerd in {}", host.role()), &mut command)?;
        let kubelet = Self { process, logs: files.logs, _control_groups: control_groups };
        let path = format!("/api/v1/nodes/{}", node.name());
        await_condition(&format!("{} ready", node.name()), START, || {
            if let Err(ended) = kubelet.process.ensure_running() {
                return Some(Err(ended));
            }
            api.get(&path).is_ok_and(|object| is_ready(&object)).then_some(Ok(()))
        })
        .with_context(|| format!("kubelet and containerd wrote:\n{}", kubelet.process.report()))
        .and_then(|outcome| outcome)?;
        Ok(kubelet)
    }

    /// What a container of a pod has written so far, by the pod's name and UID. Each line begins with its time.
    ///
    /// # Errors
    ///
    /// When the container has not been started.
    pub fn log(&self, pod: &str, uid: &str, container: &str) -> Result<String> {
        let file = self.logs.join(format!("default_{pod}_{uid}")).join(container).join("0.log");
        std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))
    }

    /// The processes of both; what they write is the kubelet's and containerd's log.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// The kubelet has found its runtime and network, and says so.
fn is_ready(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("Ready")
            && condition.get("status").and_then(Value::as_str) == Some("True")
            && condition.get("reason").and_then(Value::as_str) == Some("KubeletReady")
    })
}

fn search_path() -> Result<String> {
    let own = [binaries::directory()?, binaries::runtime_directory()?].map(|path: PathBuf| path.display().to_string());
    Ok(format!("{}:{}", own.join(":"), control_plane::SEARCH_PATH))
}
