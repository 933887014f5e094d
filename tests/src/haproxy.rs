//! A real `HAProxy`, the server that most tests drain.

use std::{
    fmt::Write as _,
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::{Host, Process, programs, sockets};

/// How long its control socket may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sockets that a port is listened on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// One for each family: `0.0.0.0` and `[::]` for IPv6 only.
    #[default]
    Separate,
    /// One for both: `[::]`.
    Dual,
    /// `0.0.0.0` only.
    V4,
    /// `[::]` for IPv6 only.
    V6,
}

/// Which `HAProxy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// The machine's own.
    #[default]
    Installed,
    /// 3.0, from the cache of `cargo xtask setup`.
    V3_0,
}

/// How it is started.
#[derive(Clone, Debug)]
pub struct HaProxyConfig {
    /// What it answers.
    pub name: String,
    /// Its program.
    pub release: Release,
    /// Its ports.
    pub ports: Vec<u16>,
    /// Its sockets.
    pub bind: Bind,
    /// Options of each `bind`, such as `defer-accept`.
    pub options: String,
    /// How many threads it has.
    pub threads: u32,
    /// A program with arguments that changes where it runs and then becomes it.
    pub through: Vec<String>,
}

/// A running `HAProxy` that answers every request with its name. It is killed when dropped.
#[derive(Debug)]
pub struct HaProxy {
    process: Process,
    control: PathBuf,
}

// === impl HaProxy ===

impl HaProxy {
    /// Starts it with a socket per family, and waits until it listens on all ports. That takes no connection.
    ///
    /// # Errors
    ///
    /// When it is not installed, or ends or does not listen in time; the message has what it wrote.
    pub fn start(host: &Host, name: &str, ports: &[u16]) -> Result<Self> {
        Self::start_with(host, name, ports, Bind::Separate)
    }

    /// The same with other sockets.
    ///
    /// # Errors
    ///
    /// When it is not installed, or ends or does not listen in time; the message has what it wrote.
    pub fn start_with(host: &Host, name: &str, ports: &[u16], bind: Bind) -> Result<Self> {
        let config = HaProxyConfig { name: name.to_owned(), ports: ports.to_vec(), bind, ..HaProxyConfig::default() };
        Self::start_as(host, &config)
    }

    /// The same in any way.
    ///
    /// # Errors
    ///
    /// When it is not installed, or ends or does not listen in time; the message has what it wrote.
    pub fn start_as(host: &Host, config: &HaProxyConfig) -> Result<Self> {
        let control = control_of(host, &config.name);
        Self::start_from(host, config, &configure(config, &control.display().to_string()))
    }

    /// The same with the two switches of `docs/servers.md`: the servers `lastsyn/keep` and `lastsyn/ready`, and a health page,
    /// `/ready`, on a port of its own.
    ///
    /// # Errors
    ///
    /// When it is not installed, or ends or does not listen in time; the message has what it wrote.
    pub fn start_with_switches(host: &Host, release: Release, name: &str, port: u16, health: u16) -> Result<Self> {
        let mut config =
            HaProxyConfig { name: name.to_owned(), release, ports: vec![port], ..HaProxyConfig::default() };
        let text = configure(&config, &control_of(host, name).display().to_string());
        let switches = format!(
            "    http-after-response set-header Connection close if !{{ srv_is_up(lastsyn/keep) }}
backend lastsyn
    server keep 127.0.0.1:1
    server ready 127.0.0.1:1
frontend health
    bind 0.0.0.0:{health}
    bind :::{health} v6only
    monitor-uri /ready
    monitor fail if !{{ srv_is_up(lastsyn/ready) }}
"
        );
        config.ports.push(health);
        Self::start_from(host, &config, &(text + &switches))
    }

    fn start_from(host: &Host, config: &HaProxyConfig, text: &str) -> Result<Self> {
        let HaProxyConfig { name, release, ports, bind, .. } = config;
        let haproxy = match release {
            Release::Installed => programs::find("haproxy")?,
            Release::V3_0 => programs::cached("haproxy-3.0/haproxy")?,
        };
        let control = control_of(host, name);
        let configuration = control.with_extension("cfg");
        fs::write(&configuration, text).with_context(|| format!("{} was not written", configuration.display()))?;
        let mut command = match config.through.as_slice() {
            [] => host.command(&haproxy)?,
            [program, arguments @ ..] => {
                let mut command = host.command(program)?;
                command.args(arguments).arg(haproxy);
                command
            }
        };
        command.arg("-db").arg("-f").arg(&configuration);
        let process = Process::start(format!("HAProxy in {}", host.role()), &mut command)?;
        sockets::await_listeners(host, &process, ports, if *bind == Bind::Separate { 2 } else { 1 })?;
        Ok(Self { process, control })
    }

    /// Asks it to stop as a kubelet's stop signal does where the image says so: it closes its listeners at once and ends
    /// when its connections have.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn soft_stop(&self) -> Result<()> {
        self.process.signal(Signal::USR1)
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// When it does not end within the time.
    pub fn wait(&self, within: Duration) -> Result<ExitStatus> {
        self.process.wait(within)
    }

    /// Sends a command such as `show stat` to its control socket.
    ///
    /// # Errors
    ///
    /// When the socket does not answer.
    pub fn control(&self, command: &str) -> Result<String> {
        let mut answer = String::new();
        UnixStream::connect(&self.control)
            .and_then(|mut socket| {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.write_all(command.as_bytes())?;
                socket.write_all(b"\n")?;
                socket.read_to_string(&mut answer)
            })
            .with_context(|| format!("the control socket of {} did not answer `{command}`", self.process.name()))?;
        Ok(answer)
    }

    /// The path of its control socket.
    pub fn control_socket(&self) -> &Path {
        &self.control
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

impl Default for HaProxyConfig {
    /// Port 80 with a socket for each family and one thread, named `haproxy`.
    fn default() -> Self {
        Self {
            name: "haproxy".to_owned(),
            release: Release::Installed,
            ports: vec![80],
            bind: Bind::Separate,
            options: String::new(),
            threads: 1,
            through: Vec::new(),
        }
    }
}

fn control_of(host: &Host, name: &str) -> PathBuf {
    host.directory().join(format!("haproxy-{}-{name}.sock", host.role()))
}

fn configure(config: &HaProxyConfig, control: &str) -> String {
    let HaProxyConfig { name, ports, bind, options, threads, .. } = config;
    let mut text = format!(
        "global
    nbthread {threads}
    maxconn 8000
    stats socket {control} mode 600 level admin
    stats timeout 10s
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 60s
frontend web
"
    );
    for port in ports {
        let binds = match bind {
            Bind::Separate => vec![format!("0.0.0.0:{port}"), format!(":::{port} v6only")],
            Bind::Dual => vec![format!(":::{port} v4v6")],
            Bind::V4 => vec![format!("0.0.0.0:{port}")],
            Bind::V6 => vec![format!(":::{port} v6only")],
        };
        for bind in binds {
            writeln!(text, "    bind {bind} {options}").ok();
        }
    }
    writeln!(text, "    http-request return status 200 content-type text/plain string \"{name}\"").ok();
    text
}
