//! Kubelet's probes: at which ports they come, and how they are told from clients.

use std::time::Duration;

use super::listener::Port;

/// A port at which kubelet probes the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbePort {
    /// The port.
    pub port: Port,
    /// The time from one probe to the next (`periodSeconds`); more than 0.
    pub period: Duration,
}

impl ProbePort {
    /// Kubernetes' default `periodSeconds` (`SetDefaults_Probe`).
    pub const DEFAULT_PERIOD: Duration = Duration::from_secs(10);
}
