//! The agent itself, its own program in a host.

mod binary;
mod counts;
mod drain;

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

pub use self::{
    counts::{Counts, counts},
    drain::{DrainAnswer, DrainCall},
};
use crate::{Host, Process, clock::Deadline, http, wait::await_condition};

/// The agent's port where nothing else is configured.
pub const PORT: u16 = 19_480;

/// The key of the path of the agent's unix socket.
const SOCKET: &str = "LASTSYN_SERVER_SOCKET";
/// The key of the path of its state file, which it has only where a test says so: agents of other hosts are on this machine too.
const STATE: &str = "LASTSYN_STATE_PATH";
/// Evidence that is not older the agent shows again to whoever looks (`FRESH` in its `drive/run/serve.rs`), and a little more.
const SHOWN_AGAIN: Duration = Duration::from_millis(25);
/// How long the agent may take to answer anything but a drain.
const PATIENCE: Duration = Duration::from_secs(5);

/// How an agent is started.
#[derive(Clone, Debug, Default)]
pub struct AgentConfig {
    /// Its environment, such as `LASTSYN_DRAIN_QUIET_PERIOD`: the only keys of that prefix that it gets, besides a unix
    /// socket in the lab's directory, and no state file.
    pub env: Vec<(String, String)>,
    /// Arguments after `lastsyn run`.
    pub args: Vec<String>,
    /// Its port, if configured otherwise than [`PORT`].
    pub port: Option<u16>,
    /// Its program, if not the one of this workspace.
    pub binary: Option<PathBuf>,
    /// A program with arguments that changes what it may do or see and then becomes it, such as `setpriv`.
    pub through: Vec<String>,
}

/// An agent in a host. It is killed when dropped.
#[derive(Debug)]
pub struct Agent {
    host: Host,
    process: Process,
    address: SocketAddr,
    binary: PathBuf,
    env: Vec<(String, String)>,
    through: Vec<String>,
}

// === impl AgentConfig ===

impl AgentConfig {
    /// With one more key in its environment.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl Into<String>) -> Self {
        self.env.push((key.to_owned(), value.into()));
        self
    }

    /// Started through another program, such as `["setpriv", "--no-new-privs"]`.
    #[must_use]
    pub fn through<A: Into<String>>(mut self, program: impl IntoIterator<Item = A>) -> Self {
        self.through = program.into_iter().map(Into::into).collect();
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }
}

// === impl Agent ===

impl Agent {
    /// Starts the agent and waits until it answers.
    ///
    /// # Errors
    ///
    /// When its program is missing or older than its sources, or it ends or does not answer in time; the message has what
    /// it wrote.
    pub fn start(host: &Host, config: AgentConfig) -> Result<Self> {
        let agent = Self::spawn(host, config)?;
        await_condition("the agent's answer", PATIENCE, || match agent.process.ensure_running() {
            Ok(()) => agent.status().is_ok().then_some(Ok(())),
            Err(ended) => Some(Err(ended)),
        })
        .with_context(|| format!("the agent wrote:\n{}", agent.process.report()))
        .and_then(|outcome| outcome)?;
        Ok(agent)
    }

    /// Starts the agent and does not wait, for an agent that is to fail.
    ///
    /// # Errors
    ///
    /// When its program is missing or older than its sources.
    pub fn spawn(host: &Host, config: AgentConfig) -> Result<Self> {
        let binary = config.binary.map_or_else(binary::find, Ok)?;
        let mut command = command(host, &config.through, &binary)?;
        command.arg("run").args(config.args).envs(config.env.iter().map(|(key, value)| (key, value)));
        let process = Process::start(format!("the agent in {}", host.role()), &mut command)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port.unwrap_or(PORT)));
        Ok(Self { host: host.clone(), process, address, binary, env: config.env, through: config.through })
    }

    /// `GET /v1/status`.
    ///
    /// # Errors
    ///
    /// When the answer is not 200 with JSON.
    pub fn status(&self) -> Result<Value> {
        self.get("/v1/status")?.json()
    }

    /// `GET /v1/status` once it must show all that has happened up to now.
    ///
    /// # Errors
    ///
    /// When the answer is not 200 with JSON.
    pub fn status_of_now(&self) -> Result<Value> {
        let shown_again = Deadline::after(SHOWN_AGAIN);
        await_condition("the end of what the agent shows again", PATIENCE, || shown_again.passed())?;
        self.status()
    }

    /// `GET /metrics`.
    ///
    /// # Errors
    ///
    /// When the answer is not 200.
    pub fn metrics(&self) -> Result<String> {
        Ok(self.get("/metrics")?.body)
    }

    /// Gets any of its resources.
    ///
    /// # Errors
    ///
    /// When the answer is not 200.
    pub fn get(&self, path: &str) -> Result<http::Answer> {
        let answer = http::get(&self.host, self.address, path, PATIENCE)?;
        ensure!(answer.status == 200, "the agent answered {path} with {}: {}", answer.status, answer.body);
        Ok(answer)
    }

    /// Calls the hook over HTTP. The call is under way when this returns, and waits for its answer on a thread.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn drain(&self) -> Result<DrainCall> {
        DrainCall::place(&self.host, self.address)
    }

    /// Runs `lastsyn drain` with arguments, as a kubelet runs the exec hook.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn hook<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Result<Process> {
        run(&self.host, &self.binary, "drain", arguments)
    }

    /// Runs `lastsyn check` as it would find things itself: with its environment, and through the same program.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn check(&self) -> Result<Process> {
        let mut command = command(&self.host, &self.through, &self.binary)?;
        command.arg("check").envs(self.env.iter().map(|(key, value)| (key, value)));
        Process::start(format!("lastsyn check in {}", self.host.role()), &mut command)
    }

    /// Asks it to end, as a kubelet does.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn terminate(&self) -> Result<()> {
        self.process.signal(Signal::TERM)
    }

    /// Ends it at once.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn kill(&self) -> Result<ExitStatus> {
        self.process.kill()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within the time.
    pub fn wait(&self, within: Duration) -> Result<ExitStatus> {
        self.process.wait(within)
    }

    /// Where it answers in its host.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process; its log is on standard error.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// Runs `lastsyn drain` with arguments in a host that need not have an agent.
///
/// # Errors
///
/// When the program is missing or older than its sources, or does not start.
pub fn hook<A: AsRef<OsStr>>(host: &Host, arguments: impl IntoIterator<Item = A>) -> Result<Process> {
    subcommand(host, "drain", arguments)
}

/// The agent's program.
///
/// # Errors
///
/// When it is missing or older than its sources.
pub(crate) fn program() -> Result<PathBuf> {
    binary::find()
}

/// Runs any subcommand of `lastsyn` in a host.
///
/// # Errors
///
/// When the program is missing or older than its sources, or does not start.
pub fn subcommand<A: AsRef<OsStr>>(host: &Host, name: &str, arguments: impl IntoIterator<Item = A>) -> Result<Process> {
    run(host, &binary::find()?, name, arguments)
}

fn run<A: AsRef<OsStr>>(
    host: &Host,
    binary: &PathBuf,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Process> {
    Process::start(format!("lastsyn {name} in {}", host.role()), command(host, &[], binary)?.arg(name).args(arguments))
}

/// The program of this workspace.
///
/// # Errors
///
/// When it is missing or older than its sources.
pub fn binary() -> Result<PathBuf> {
    binary::find()
}

/// The program in a host, with none of the caller's configuration. Agent and hook of a host share its unix socket.
pub(crate) fn command(host: &Host, through: &[String], binary: &PathBuf) -> Result<Command> {
    let mut command = match through {
        [] => host.command(binary)?,
        [program, arguments @ ..] => {
            let mut command = host.command(program)?;
            command.args(arguments).arg(binary);
            command
        }
    };
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("LASTSYN_")) {
        command.env_remove(key);
    }
    command.env(SOCKET, socket(host)).env(STATE, "");
    Ok(command)
}

/// The unix socket of the agent in a host.
pub fn socket(host: &Host) -> PathBuf {
    host.directory().join(format!("agent-{}.sock", host.role()))
}
