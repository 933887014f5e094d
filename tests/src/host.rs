//! A host: a network namespace with a name, entered by threads and processes.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    net::IpAddr,
    os::fd::AsFd,
    panic,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{Lab, leftovers, programs};

/// Where named network namespaces are mounted, by the convention of `ip netns`.
pub(crate) const NAMESPACES: &str = "/run/netns";

/// The file of a named namespace.
pub(crate) fn path_of(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// A network namespace with its loopback interface up. Cloning shares it; the last one dropped removes it, with every
/// process that is still in it.
#[derive(Clone, Debug)]
pub struct Host(Arc<Namespace>);

#[derive(Debug)]
struct Namespace {
    lab: Lab,
    role: String,
    name: String,
    path: PathBuf,
    entrance: File,
}

// === impl Host ===

impl Host {
    pub(crate) fn new(lab: Lab, role: &str) -> Result<Self> {
        let name = format!("{}-{role}", lab.name());
        let making = Command::new(programs::find("ip")?).args(["netns", "add", &name]).output();
        let output = making.context("`ip netns add` did not run")?;
        ensure!(
            output.status.success(),
            "the network namespace {name} could not be made: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let path = path_of(&name);
        let entrance = File::open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
        let host = Self(Arc::new(Namespace { lab, role: role.to_owned(), name, path, entrance }));

        // A new namespace takes some of these from the machine, which may have them otherwise.
        for (name, value) in [
            ("net.ipv6.conf.all.disable_ipv6", "0"),
            ("net.ipv6.conf.default.disable_ipv6", "0"),
            ("net.ipv6.conf.all.accept_dad", "0"),
            ("net.ipv6.conf.default.accept_dad", "0"),
            ("net.ipv6.conf.default.router_solicitation_delay", "0"), // also delays an address on a link that comes up
            ("net.ipv6.conf.all.forwarding", "0"),
            ("net.ipv4.ip_forward", "0"),
            ("net.ipv4.conf.all.rp_filter", "0"),
            ("net.ipv4.conf.default.rp_filter", "0"),
            ("net.ipv4.tcp_syncookies", "1"),
        ] {
            host.set_sysctl(name, value)?;
        }
        host.ip("link set lo up\n")?;
        Ok(host)
    }

    /// What the host is in its scene, such as `client`.
    pub fn role(&self) -> &str {
        &self.0.role
    }

    /// The name of its namespace, as `ip netns list` shows it while the lab runs.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The file that stands for the namespace.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The lab's directory, for files of processes in this host.
    pub fn directory(&self) -> &Path {
        self.0.lab.directory()
    }

    /// Runs a closure on a thread of its own in the host. Sockets that it makes belong to the host for good.
    ///
    /// # Panics
    ///
    /// When the closure panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                work()
            });
            inside.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        })
    }

    /// The same for a future, on a runtime of one thread.
    ///
    /// # Panics
    ///
    /// When the future panics.
    pub fn block_on<T: Send, F: Future<Output = T>>(&self, work: impl FnOnce() -> F + Send) -> T {
        self.run(|| runtime().block_on(async { work().await }))
    }

    /// Starts a thread in the host that may outlive the caller. It keeps the host.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<thread::JoinHandle<T>> {
        let host = self.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                host.enter();
                work()
            })
            .with_context(|| format!("no thread could be started for {name}"))
    }

    /// A command whose process will be in the host. Its process id is the program's own: `nsenter` becomes the program.
    ///
    /// # Errors
    ///
    /// When the program is not installed.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let program = program.as_ref();
        let file = program.to_str().map_or_else(|| Ok(PathBuf::from(program)), programs::find)?;
        let mut command = Command::new(programs::find("nsenter")?);
        let mut namespace = std::ffi::OsString::from("--net=");
        namespace.push(self.path());
        command.arg(namespace).arg("--").arg(file);
        Ok(command)
    }

    /// Runs lines of `ip -batch` in the host.
    ///
    /// # Errors
    ///
    /// When a line fails; the message has what `ip` said.
    pub fn ip(&self, lines: &str) -> Result<()> {
        self.feed("ip", &["-batch", "-"], lines)
    }

    /// Applies a set of rules in the host, all or nothing, in one step.
    ///
    /// # Errors
    ///
    /// When `nft` refuses them; the message has what it said.
    pub fn nft(&self, rules: &str) -> Result<()> {
        self.feed("nft", &["-f", "-"], rules)
    }

    /// Sets a kernel parameter of the host, such as `net.ipv4.tcp_syncookies`.
    ///
    /// # Errors
    ///
    /// When the kernel has no such parameter for a namespace or refuses the value.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<()> {
        // The files show the parameters of the namespace of the thread that opens them.
        self.run(|| fs::write(sysctl_file(name), value))
            .with_context(|| format!("{name} of {} could not be set to {value}", self.role()))
    }

    /// Reads a kernel parameter of the host.
    ///
    /// # Errors
    ///
    /// When the kernel has no such parameter for a namespace.
    pub fn sysctl(&self, name: &str) -> Result<String> {
        let text = self
            .run(|| fs::read_to_string(sysctl_file(name)))
            .with_context(|| format!("{name} of {} could not be read", self.role()))?;
        Ok(text.trim().to_owned())
    }

    /// Lets the host forward packets, as a node does.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn forward(&self) -> Result<()> {
        self.set_sysctl("net.ipv4.ip_forward", "1")?;
        self.set_sysctl("net.ipv6.conf.all.forwarding", "1")
    }

    /// The hardware address of an interface.
    ///
    /// # Errors
    ///
    /// When the host has no such interface.
    pub fn hardware_address(&self, interface: &str) -> Result<[u8; 6]> {
        let output = self.command("ip")?.args(["-json", "link", "show", "dev", interface]).output()?;
        let links: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} has no interface {interface}", self.role()))?;
        let text = links.pointer("/0/address").and_then(serde_json::Value::as_str).unwrap_or_default();
        let bytes: Vec<u8> = text.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
        bytes.try_into().map_err(|_bytes: Vec<u8>| {
            anyhow::anyhow!("{interface} of {} has the hardware address `{text}`", self.role())
        })
    }

    /// Whether an address is one of the host's own.
    ///
    /// # Errors
    ///
    /// When the addresses cannot be read.
    pub fn has_address(&self, address: IpAddr) -> Result<bool> {
        let output = self.command("ip")?.args(["-json", "address", "show"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.contains(&format!("\"local\":\"{address}\"")))
    }

    fn feed(&self, program: &str, arguments: &[&str], input: &str) -> Result<()> {
        let mut child = self
            .command(program)?
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{program} did not start in {}", self.role()))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A program that ends early says why on its standard error, which is better than the broken pipe.
            drop(pipe.write_all(input.as_bytes()));
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{program} in {} failed: {}\nIt was given:\n{input}", self.role(), said.trim());
        }
        Ok(())
    }

    #[expect(
        clippy::expect_used,
        reason = "the namespace is held open, and the right to enter it was needed to make it; a test cannot go on without"
    )]
    fn enter(&self) {
        move_into_link_name_space(self.0.entrance.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("a thread enters the host's network namespace");
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = leftovers::remove_namespace(&self.name) {
            // Not a panic, which in a drop during a panic would end the process and leave more behind.
            eprintln!("the host {} was not removed: {error:#}", self.role);
        }
    }
}

#[expect(clippy::expect_used, reason = "a runtime needs no more than an epoll file; a test cannot go on without")]
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime of one thread is made")
}

fn sysctl_file(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}
