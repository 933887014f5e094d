//! At which ports kubelet's probes are told from clients, and who kubelet is.

use super::evidence::Reader;
use crate::{
    config::Probes,
    core::probe::ProbePort,
    sensor::{Asker, ProbeMethod},
};

/// Has SYNs of kubelet's own to the probed ports taken for probes, from now on and at no others. May be called again, as
/// soon as more is known.
///
/// `own` is what the pod's own object names; `None` where that has not been read.
pub(super) fn apply(reader: &mut Reader, configured: &Probes, own: Option<&[ProbePort]>) {
    let (ports, none) = match (configured, own) {
        (Probes::Off, _) => (&[][..], "listeners.probes is off"),
        (Probes::Ports(ports), _) => (ports.as_slice(), "listeners.probes names no port"),
        (Probes::Auto, Some(own)) => (own, "the pod's object has no probe that opens a connection"),
        (Probes::Auto, None) => {
            (&[][..], "listeners.probes is auto, and the pod's own object has not been read: list them")
        }
    };
    if let Err(why) = reader.probe_at(ports, none) {
        tracing::warn!(%why, "the kernel does not take the probed ports: kubelet's probes count as clients there");
    }
    let told = reader.probes();
    if told.method == ProbeMethod::Unsupported {
        let why = told.why.unwrap_or_default();
        tracing::warn!(%why, "listeners.probes is without effect: kubelet's probes count as clients");
    }
}

/// A request in kubelet's name came over this connection. What is not learnt costs time alone: probes then count as
/// clients.
pub(super) fn kubelet_asked(reader: &mut Reader, asker: Asker) {
    match reader.kubelet_asked(asker) {
        Ok(true) => tracing::info!("kubelet's control group is known: its probes are told from clients"),
        Ok(false) => {}
        Err(why) => tracing::debug!(%why, "kubelet's control group cannot be learnt: its probes count as clients"),
    }
}
