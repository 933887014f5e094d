//! What the sensor will find.

use std::collections::BTreeSet;

use super::table::Line;
use crate::{
    config::{Config, Probes, SensorStrategy},
    core::{probe::ProbePort, verdict::Strategy},
    sensor::{self, Capability, Scope, namespace},
};

/// Where the kernel shows its own BTF.
const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

pub(super) fn kernel() -> Line {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let btf = if std::path::Path::new(KERNEL_BTF).exists() { "with BTF" } else { "without BTF, which is not needed" };
    Line::ok("kernel", format!("Linux {release}, {btf}"))
}

pub(super) fn capabilities() -> Line {
    let (has, lacks) = sensor::capabilities();
    let named = |list: &[Capability]| list.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
    let found = match (has.as_slice(), lacks.as_slice()) {
        ([], _) => "none of those that a sensor needs".to_owned(),
        (has, []) => named(has),
        (has, lacks) => format!("{}; not {}", named(has), named(lacks)),
    };
    let enough =
        Capability::FOR_PROGRAMS.iter().all(|needed| has.contains(needed)) || has.contains(&Capability::NetRaw);
    if enough {
        Line::ok("capabilities", found)
    } else {
        let advice = "BPF and NET_ADMIN, or NET_RAW, are needed to count SYNs one by one; without them drains end \
                      `unverified` at best";
        Line::warning("capabilities", found, advice)
    }
}

/// Tries the sensors that may be taken, best first, up to the one that would run. Nothing is attached.
pub(super) fn sensors(strategy: SensorStrategy, scope: Scope) -> Vec<Line> {
    let advice = "drains end `unverified` at best, on the kernel's TCP counters";
    let wanted = match strategy {
        SensorStrategy::Auto => None,
        SensorStrategy::Tcx => Some(Strategy::Tcx),
        SensorStrategy::Cgroup => Some(Strategy::Cgroup),
        SensorStrategy::Clsact => Some(Strategy::Clsact),
        SensorStrategy::Packet => Some(Strategy::Packet),
        SensorStrategy::Counters => {
            return vec![Line::note("sensor", "sensor.strategy is counters", "drains end `unverified` at best")];
        }
    };
    if let Some(wanted) = wanted {
        return vec![match sensor::preflight(wanted) {
            Ok(()) => Line::ok(wanted.name(), "it can be had, and its self-test passed"),
            Err(error) => {
                let advice = format!("sensor.strategy is {}: the agent does not start like this", wanted.name());
                Line::failure(wanted.name(), error, advice)
            }
        }];
    }
    let mut lines = Vec::new();
    for strategy in sensor::in_order(scope) {
        match sensor::preflight(*strategy) {
            Ok(()) if scope == Scope::Node && *strategy != Strategy::Cgroup => {
                let found = "it can be had, and does not tell the pod's SYNs from others of the node (hostNetwork)";
                lines.push(Line::warning(strategy.name(), found, "drains end `unverified` at best"));
                return lines;
            }
            Ok(()) => {
                lines.push(Line::ok(strategy.name(), "it can be had, and its self-test passed"));
                return lines;
            }
            Err(error) => lines.push(Line::note(strategy.name(), error, "the next sensor is tried")),
        }
    }
    lines.push(Line::warning("sensor", "none that counts SYNs one by one can be had", advice));
    lines
}

/// How kubelet's probes would be told from clients. `own` are those of the pod's own object, where it could be read.
pub(super) fn probes(config: &Config, own: Option<&[ProbePort]>) -> Line {
    let ports = match (&config.listeners.probes, own) {
        (Probes::Off, _) => {
            return Line::note("probes", "kubelet's probes count as clients", "listeners.probes is off");
        }
        (Probes::Auto, None) => {
            let advice =
                "the pod's own object, which names them, could not be read: list the probed ports in listeners.probes";
            return Line::note("probes", "kubelet's probes count as clients", advice);
        }
        (Probes::Auto, Some([])) => return Line::ok("probes", "the pod has none that opens a connection"),
        (Probes::Auto, Some(ports)) => ports,
        (Probes::Ports(ports), _) => ports.as_slice(),
    };
    let ports = ports.iter().map(|probe| probe.port.to_string()).collect::<BTreeSet<_>>();
    let ports = ports.into_iter().collect::<Vec<_>>().join(", ");
    let found = format!("at {ports} kubelet's are known by its control group, once it has asked the agent");
    let advice = "the agent's container needs an httpGet probe at the agent's port. Until then, and with any sensor but tcx \
                  and clsact, probes count as clients";
    Line::note("probes", found, advice)
}

pub(super) fn counters() -> Line {
    match namespace::counters() {
        Ok(_) => Line::ok("counters", "the pod's TCP counters can be read"),
        Err(error) => {
            let advice = "without them no sensor can be trusted, and every drain lasts to its bound";
            Line::warning("counters", error.to_string(), advice)
        }
    }
}
