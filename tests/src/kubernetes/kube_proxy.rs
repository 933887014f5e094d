//! A node's kube-proxy.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{addresses::POD_RANGES, control_plane, rule_writer::RuleWriter};
use crate::{Host, Process, Signal, http, wait::await_condition};

/// The port of `/livez` and `/healthz`.
pub(crate) const HEALTH_PORT: u16 = 10_256;
/// Many times what it needs on an idle machine.
const START: Duration = Duration::from_secs(30);
/// For an answer of a kube-proxy that runs.
const SOON: Duration = Duration::from_secs(5);

/// What kube-proxy writes its rules with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `mode: nftables`.
    #[default]
    Nftables,
    /// `mode: iptables`.
    Iptables,
}

/// How a kube-proxy times its syncs. The defaults are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `minSyncPeriod`: at least so long between two syncs.
    pub min_sync: Duration,
    /// `syncPeriod`: how often it tries again after a failed write. After twice this time without success it calls itself
    /// unhealthy.
    pub sync: Duration,
}

/// A kube-proxy, which may be stopped and started again.
#[derive(Debug)]
pub struct KubeProxy {
    host: Host,
    address: IpAddr,
    configuration: PathBuf,
    search_path: String,
    process: Mutex<Option<Process>>,
}

// === impl Mode ===

impl Mode {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Nftables, Self::Iptables];

    /// The word for it in kube-proxy's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        }
    }
}

// === impl Timing ===

impl Default for Timing {
    fn default() -> Self {
        Self { min_sync: Duration::from_secs(1), sync: Duration::from_secs(30) }
    }
}

// === impl KubeProxy ===

impl KubeProxy {
    /// Starts it in a node's host.
    pub(crate) fn start(
        host: &Host,
        address: IpAddr,
        (mode, timing): (Mode, Timing),
        kubeconfig: &Path,
        writer: Option<&RuleWriter>,
    ) -> Result<Self> {
        let configuration = host.directory().join(format!("kube-proxy-{}.json", host.role()));
        let text = configure(host.role(), mode, timing, kubeconfig);
        fs::write(&configuration, text).with_context(|| format!("{} was not written", configuration.display()))?;
        let search_path = control_plane::SEARCH_PATH;
        let search_path = writer.map_or_else(|| search_path.to_owned(), |writer| writer.search_path(search_path));
        let proxy = Self { host: host.clone(), address, configuration, search_path, process: Mutex::new(None) };
        proxy.restart()?;
        Ok(proxy)
    }

    /// Starts it where it was killed, with the rules that the dead one left. It does not wait for it to answer, for
    /// without the API server it does not.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn restart(&self) -> Result<()> {
        let config = self.configuration.display().to_string();
        let process = control_plane::start_by(&self.host, "kube-proxy", &[("config", config)], &self.search_path)?;
        *self.process() = Some(process);
        Ok(())
    }

    /// Kills it. Its rules stay in force, as on a real node.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the process.
    pub fn kill(&self) -> Result<()> {
        let process = self.process().take();
        process.map_or(Ok(()), |process| process.kill().map(drop))
    }

    /// Stops it where it is: connections are accepted by the kernel, and nothing answers.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// What it answers to `GET /livez` now, asked from a host.
    ///
    /// # Errors
    ///
    /// When it does not answer with JSON. A status code is no error.
    pub fn livez(&self, from: &Host) -> Result<Value> {
        http::get(from, (self.address, HEALTH_PORT).into(), "/livez", SOON)?.json()
    }

    /// When it last wrote its rules of a family (`IPv4`, `IPv6`), in its own words.
    ///
    /// # Errors
    ///
    /// When it does not answer, or not with such a time yet.
    pub fn stamp(&self, from: &Host, family: &str) -> Result<String> {
        let answer = self.livez(from)?;
        let stamp = answer.pointer(&format!("/status/{family}/lastUpdated")).and_then(Value::as_str);
        stamp.map(str::to_owned).with_context(|| format!("no stamp for {family} in {answer}"))
    }

    /// Waits until it has given both families a time.
    ///
    /// # Errors
    ///
    /// When it ends or does not within its time; the message has what it wrote.
    pub fn await_status(&self, from: &Host) -> Result<()> {
        await_condition(&format!("the status of kube-proxy on {}", self.host.role()), START, || {
            let running = self.process().as_ref().map(Process::ensure_running);
            if let Some(Err(ended)) = running {
                return Some(Err(ended));
            }
            ["IPv4", "IPv6"].iter().all(|family| self.stamp(from, family).is_ok()).then_some(Ok(()))
        })
        .and_then(|outcome| outcome)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        match self.process().as_ref() {
            Some(process) => process.signal(signal),
            None => anyhow::bail!("kube-proxy of {} was killed", self.host.role()),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn configure(node: &str, mode: Mode, timing: Timing, kubeconfig: &Path) -> String {
    let millis = |time: Duration| format!("{}ms", time.as_millis());
    let periods = json!({"minSyncPeriod": millis(timing.min_sync), "syncPeriod": millis(timing.sync)});
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": mode.name(),
        "hostnameOverride": node,
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": POD_RANGES,
        "detectLocalMode": "ClusterCIDR",
        "bindAddress": "0.0.0.0",
        "healthzBindAddress": format!("0.0.0.0:{HEALTH_PORT}"),
        "metricsBindAddress": "127.0.0.1:10249",
        // The machine's own limits are none of its business.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "nftables": periods,
        "iptables": periods,
    })
    .to_string()
}
