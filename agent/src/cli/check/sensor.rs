//! What the sensor will find.

use super::table::Line;
use crate::{
    config::SensorStrategy,
    sensor::{self, Loaded, missing_capabilities, namespace},
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
    match missing_capabilities() {
        None => Line::ok("capabilities", "BPF and NET_ADMIN"),
        Some(missing) => Line::warning(
            "capabilities",
            missing.to_string(),
            "without them SYNs are not counted one by one, and drains end `unverified` at best",
        ),
    }
}

/// Loads the programs and runs their self-test, and asks for TCX. Nothing is attached.
pub(super) fn programs(strategy: SensorStrategy) -> Vec<Line> {
    if strategy == SensorStrategy::Counters {
        return vec![Line::note("sensor", "sensor.strategy is counters", "drains end `unverified` at best")];
    }
    let lacking = |what, found: String| {
        let advice = "drains end `unverified` at best, on the kernel's TCP counters";
        match strategy {
            SensorStrategy::Tcx => {
                Line::failure(what, found, "sensor.strategy is tcx: the agent does not start like this")
            }
            SensorStrategy::Auto | SensorStrategy::Counters => Line::warning(what, found, advice),
        }
    };
    let programs = match Loaded::load()
        .map_err(|error| error.to_string())
        .and_then(|mut loaded| loaded.self_test().map_err(|error| error.to_string()))
    {
        Ok(()) => Line::ok("programs", "the kernel takes them, and their self-test passed"),
        Err(error) => lacking("programs", error),
    };
    let tcx = match sensor::tcx_supported() {
        Ok(()) => Line::ok("tcx", "the kernel has it"),
        Err(error) => lacking("tcx", error.to_string()),
    };
    vec![programs, tcx]
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
