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

use crate::{Host, Process, sockets};

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
        let control = control_of(host, name);
        let text = configure(name, ports, bind, &control.display().to_string());
        Self::start_from(host, name, &text, ports, if bind == Bind::Separate { 2 } else { 1 })
    }

    /// The same with the two switches of `docs/servers.md`: the servers `lastsyn/keep` and `lastsyn/ready`, and a health page,
    /// `/ready`, on a port of its own.
    ///
    /// # Errors
    ///
    /// When it is not installed, or ends or does not listen in time; the message has what it wrote.
    pub fn start_with_switches(host: &Host, name: &str, port: u16, health: u16) -> Result<Self> {
        let control = control_of(host, name);
        let text = configure(name, &[port], Bind::Separate, &control.display().to_string());
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
        Self::start_from(host, name, &(text + &switches), &[port, health], 2)
    }

    fn start_from(host: &Host, name: &str, text: &str, ports: &[u16], sockets_per_port: usize) -> Result<Self> {
        let control = control_of(host, name);
        let configuration = control.with_extension("cfg");
        fs::write(&configuration, text).with_context(|| format!("{} was not written", configuration.display()))?;
        let process = Process::start(
            format!("HAProxy in {}", host.role()),
            host.command("haproxy")?.arg("-db").arg("-f").arg(&configuration),
        )?;
        sockets::await_listeners(host, &process, ports, sockets_per_port)?;
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

fn control_of(host: &Host, name: &str) -> PathBuf {
    host.directory().join(format!("haproxy-{}-{name}.sock", host.role()))
}

fn configure(name: &str, ports: &[u16], bind: Bind, control: &str) -> String {
    let mut text = format!(
        "global
    nbthread 1
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
            writeln!(text, "    bind {bind}").ok();
        }
    }
    writeln!(text, "    http-request return status 200 content-type text/plain string \"{name}\"").ok();
    text
}
