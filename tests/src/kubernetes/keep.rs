//! A cluster that stays up for a developer: `cargo xtask lab up|down|status|run`. A process of its own holds it, and a file
//! in [`STATE`], locked while it does, tells where it is.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{Cluster, Mode};
use crate::{Host, host::runtime, programs, wait::await_condition};

/// Where labs that stay up are noted.
const STATE: &str = "/run/lastsyn-lab";
/// Many times what a lab takes to come up on an idle machine.
const START: Duration = Duration::from_mins(3);
/// For all its processes to end.
const END: Duration = Duration::from_secs(30);

/// A lab that stays up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// The mode of its kube-proxies, as Kubernetes writes it.
    pub mode: String,
    /// A client's file with every right, for [`run`].
    pub kubeconfig: String,
    /// The namespace in which the API server is reached.
    pub namespace: String,
    /// Every namespace of it that stood when it was up.
    pub hosts: Vec<String>,
    pid: Pid,
}

/// Starts a lab and leaves it running.
///
/// # Errors
///
/// When one of that name is up, or it does not come up; the message says where its log is.
pub fn up(name: &str, mode: Mode) -> Result<Kept> {
    ensure!(
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'),
        "`{name}` is no name for a lab"
    );
    if let Some(kept) = find(name)? {
        bail!("the lab {name} is up already, in {} mode: `cargo xtask lab down` ends it", kept.mode);
    }
    fs::create_dir_all(STATE).with_context(|| format!("{STATE} cannot be made: the lab needs root"))?;
    let log = log_of(name);
    let output = File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    // In a session of its own, for it outlives the terminal.
    let mut holder = Command::new(programs::find("setsid")?)
        .arg(std::env::current_exe().context("the lab's own program is not known")?)
        .args(["hold", "--name", name, "--mode", mode.name()])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("the lab's process did not start")?;
    let outcome = await_condition("the lab", START, || look(name, &mut holder).transpose());
    match outcome.and_then(|found| found) {
        Ok(kept) => Ok(kept),
        Err(error) => {
            holder.kill().ok(); // it may have ended
            holder.wait().ok();
            Err(error.context(format!(
                "it wrote to {}:\n{}",
                log.display(),
                fs::read_to_string(&log).unwrap_or_default()
            )))
        }
    }
}

fn look(name: &str, holder: &mut Child) -> Result<Option<Kept>> {
    if let Some(status) = holder.try_wait()? {
        bail!("the lab's process ended with {status}");
    }
    find(name)
}

/// Holds a lab until SIGTERM, and then takes it down: the process that [`up`] starts.
///
/// # Errors
///
/// When the lab does not come up, or its file cannot be written.
pub fn hold(name: &str, mode: Mode) -> Result<()> {
    let cluster = Cluster::up(mode)?;
    let hosts = std::iter::once(cluster.outside()).chain(cluster.nodes().iter().map(super::Node::host)).map(Host::name);
    let state = json!({
        "pid": std::process::id(),
        "mode": mode.name(),
        "kubeconfig": cluster.kubeconfig(),
        "namespace": cluster.outside().path(),
        "hosts": hosts.collect::<Vec<_>>(),
    });
    let path = file_of(name);
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
    file.try_lock().with_context(|| format!("another lab holds {}", path.display()))?;
    file.set_len(0)?;
    file.write_all(state.to_string().as_bytes()).with_context(|| format!("{} cannot be written", path.display()))?;
    runtime().block_on(async {
        signal(SignalKind::terminate()).context("SIGTERM cannot be waited for")?.recv().await;
        anyhow::Ok(())
    })?;
    drop(cluster);
    fs::remove_file(log_of(name)).ok(); // only a lab that failed has something to tell
    fs::remove_file(&path).with_context(|| format!("{} stays", path.display()))
}

/// Takes a lab down, and waits until nothing of it is left.
///
/// # Errors
///
/// When there is none of that name, or it does not end.
pub fn down(name: &str) -> Result<()> {
    let kept = required(name)?;
    kill_process(kept.pid, Signal::TERM).context("the lab's process cannot be asked to end")?;
    await_condition(&format!("the end of the lab {name}"), END, || match find(name) {
        Ok(None) => Some(Ok(())),
        Ok(Some(_)) => None,
        Err(error) => Some(Err(error)),
    })
    .and_then(|outcome| outcome)
}

/// Runs a command where the lab's API server is reached, with `KUBECONFIG` set.
///
/// # Errors
///
/// When there is no lab of that name, or the command does not start.
pub fn run(name: &str, command: &[String]) -> Result<ExitStatus> {
    let kept = required(name)?;
    let [program, arguments @ ..] = command else { bail!("which command?") };
    Command::new(programs::find("nsenter")?)
        .arg(format!("--net={}", kept.namespace))
        .arg("--")
        .arg(program)
        .args(arguments)
        .env("KUBECONFIG", &kept.kubeconfig)
        .status()
        .with_context(|| format!("{program} did not run"))
}

/// The labs that are up.
///
/// # Errors
///
/// When their files cannot be read.
pub fn all() -> Result<Vec<Kept>> {
    let Ok(entries) = fs::read_dir(STATE) else { return Ok(Vec::new()) };
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect();
    names.sort();
    names.iter().filter_map(|name| find(name).transpose()).collect()
}

/// The lab of a name; `None` where none is up.
fn find(name: &str) -> Result<Option<Kept>> {
    let path = file_of(name);
    let Ok(file) = File::open(&path) else { return Ok(None) };
    match file.try_lock_shared() {
        // A lab that is up, or comes up, holds it.
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error).context("the lab's file cannot be looked at"),
        Ok(()) => return Ok(None),
    }
    let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    if text.is_empty() {
        return Ok(None);
    }
    let state: Value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    read(name, &state).with_context(|| format!("{} does not tell what a lab is", path.display())).map(Some)
}

fn read(name: &str, state: &Value) -> Option<Kept> {
    let text = |key: &str| state.get(key)?.as_str().map(str::to_owned);
    let hosts = state.get("hosts")?.as_array()?.iter().filter_map(|host| host.as_str().map(str::to_owned));
    Some(Kept {
        name: name.to_owned(),
        mode: text("mode")?,
        kubeconfig: text("kubeconfig")?,
        namespace: text("namespace")?,
        hosts: hosts.collect(),
        pid: Pid::from_raw(i32::try_from(state.get("pid")?.as_i64()?).ok()?)?,
    })
}

fn required(name: &str) -> Result<Kept> {
    find(name)?.ok_or_else(|| anyhow!("no lab {name} is up: `cargo xtask lab up` starts it"))
}

fn log_of(name: &str) -> PathBuf {
    Path::new(STATE).join(format!("{name}.log"))
}

fn file_of(name: &str) -> PathBuf {
    Path::new(STATE).join(format!("{name}.json"))
}
