//! A real nginx.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::{Host, Process, programs, sockets};

/// A running nginx that answers every request with its name. It is killed when dropped.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
}

impl Nginx {
    /// Starts it with a socket per family, and waits until it listens. That takes no connection.
    ///
    /// # Errors
    ///
    /// When it is not there, or ends or does not listen in time; the message has what it wrote.
    pub fn start(host: &Host, name: &str, port: u16) -> Result<Self> {
        let program = programs::find("nginx").or_else(|_not_installed| programs::cached("nginx/usr/sbin/nginx"))?;
        let directory = host.directory().join(format!("nginx-{}-{name}", host.role()));
        fs::create_dir(&directory).with_context(|| format!("{} was not made", directory.display()))?;
        let configuration = directory.join("nginx.conf");
        fs::write(&configuration, configure(name, port))
            .with_context(|| format!("{} was not written", configuration.display()))?;
        let process = Process::start(
            format!("nginx in {}", host.role()),
            host.command(program)?.arg("-p").arg(&directory).arg("-c").arg(&configuration).args(["-e", "stderr"]),
        )?;
        sockets::await_listeners(host, &process, &[port], 2)?;
        Ok(Self { process })
    }

    /// Sends the official image's stop signal: it closes its listeners and ends when its connections have.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn stop(&self) -> Result<()> {
        self.process.signal(Signal::QUIT)
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// One process for all, so that whoever kills it leaves no worker behind. Paths are below its own directory.
fn configure(name: &str, port: u16) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("    {what}_temp_path {what};\n"))
        .concat();
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
{temporary}    server {{
        listen 0.0.0.0:{port};
        listen [::]:{port} ipv6only=on;
        location / {{ default_type text/plain; return 200 \"{name}\"; }}
    }}
}}
"
    )
}
