//! Measurements: `cargo xtask bench`, or one of them by its name, on the agent as it is shipped. Each prints a table, and writes what it measured to
//! the repository's `results`.

mod calm_drain;
mod control;
mod distribution;
mod fence_scale;
mod figures;
mod flood;
mod footprint;
mod hook_latency;
mod large_cluster;
mod new_interface;
mod packet_cost;
mod pollers;
mod process;
mod report;
mod stop_latency;
mod summary;

use anyhow::{Result, bail};

/// What can be measured.
const MEASUREMENTS: &str = "calm-drain, fence-scale, flood, footprint, hook-latency, large-cluster, new-interface, packet-cost, pollers, \
                            stop-latency";

/// Those that need no Kubernetes and take a minute or two each: they are taken where none is named.
const FAST: &[&str] = &["packet-cost", "footprint", "flood", "pollers"];

/// Takes the measurement that the first argument names, or all that are fast. The table goes to standard output, and into
/// `docs/performance.md`.
///
/// # Errors
///
/// When a scene cannot be made or does not go as planned, or there is no measurement of that name. A missed target is no
/// error.
pub fn main(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let Some(name) = arguments.next() else {
        for name in FAST {
            of_name(name)?()?;
        }
        return summary::write(true);
    };
    let measure = of_name(&name)?;
    if let Some(argument) = arguments.next() {
        bail!("unknown argument `{argument}`: a measurement takes none");
    }
    measure()?;
    summary::write(false)
}

fn of_name(name: &str) -> Result<fn() -> Result<()>> {
    Ok(match name {
        "calm-drain" => calm_drain::measure,
        "fence-scale" => fence_scale::measure,
        "flood" => flood::measure,
        "footprint" => footprint::measure,
        "hook-latency" => hook_latency::measure,
        "large-cluster" => large_cluster::measure,
        "new-interface" => new_interface::measure,
        "packet-cost" => packet_cost::measure,
        "pollers" => pollers::measure,
        "stop-latency" => stop_latency::measure,
        _ => bail!("there is no measurement `{name}`; there are: {MEASUREMENTS}"),
    })
}
