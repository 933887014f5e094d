//! At which ports kubelet's probes are told from clients, and who asks the agent: kubelet, another of this node, or neither.

use super::evidence::Reader;
use crate::{
    config::{HookFrom, Probes},
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

/// `server.hookFrom: node` is of use only where the sensor knows who calls.
pub(super) fn warn_of_unknown_callers(reader: &Reader, hook_from: HookFrom) {
    if hook_from == HookFrom::Node && !reader.knows_senders() {
        tracing::warn!(
            "server.hookFrom: node is without effect, as the sensor does not know who calls: the hook of kubelet is refused; \
             use the exec hook `lastsyn drain`"
        );
    }
}

/// Whether a process of this node opened this connection (S10). Who is not known to be one is none.
pub(super) fn is_of_this_node(reader: &Reader, asker: Asker) -> bool {
    reader.is_of_this_node(asker).unwrap_or_else(|why| {
        tracing::warn!(%why, "the kernel does not say who called the hook, which is refused");
        false
    })
}
