//! The pod's containers, as far as a drain depends on them.

use k8s_openapi::api::core::v1::{Container as ApiContainer, LifecycleHandler, Pod};

use super::long_running;

/// A container that runs for as long as the pod does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// The ports that it says it listens on. What it says binds nobody.
    pub ports: Vec<u16>,
    /// Its preStop hook.
    pub hook: Hook,
    /// It is the agent's, as far as its name, image and command tell.
    pub is_agent: bool,
}

/// A preStop hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// None: kubelet sends the stop signal at once.
    Absent,
    /// A program in the container, with its arguments.
    Exec(Vec<String>),
    /// A request by kubelet.
    HttpGet,
    /// So many seconds, whatever happens.
    Sleep(i64),
}

/// What the agent's program is called.
const PROGRAM: &str = "lastsyn";

/// Main containers, and init containers that stay (`restartPolicy: Always`).
pub fn containers(pod: &Pod) -> Vec<Container> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    long_running(spec).map(container).collect()
}

fn container(container: &ApiContainer) -> Container {
    let ports = container.ports.iter().flatten().filter_map(|port| u16::try_from(port.container_port).ok());
    let hook = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
    Container {
        name: container.name.clone(),
        ports: ports.collect(),
        hook: hook.map_or(Hook::Absent, read_hook),
        is_agent: is_agent(container),
    }
}

fn read_hook(hook: &LifecycleHandler) -> Hook {
    match hook {
        LifecycleHandler { exec: Some(exec), .. } => Hook::Exec(exec.command.clone().unwrap_or_default()),
        LifecycleHandler { http_get: Some(_), .. } => Hook::HttpGet,
        LifecycleHandler { sleep: Some(sleep), .. } => Hook::Sleep(sleep.seconds),
        // `tcpSocket` is kept for compatibility, and does nothing.
        _ => Hook::Absent,
    }
}

fn is_agent(container: &ApiContainer) -> bool {
    let runs = container.command.iter().chain(&container.args).flatten().any(|word| base_name(word) == PROGRAM);
    let image = container.image.as_deref().map(base_name).and_then(|image| image.split([':', '@']).next());
    container.name == PROGRAM || image == Some(PROGRAM) || runs
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
