//! Measurements: `cargo xtask bench NAME`, on the agent as it is shipped. Each prints a table, and writes what it measured to
//! the repository's `results`.

mod calm_drain;
mod control;
mod distribution;
mod fence_scale;
mod figures;
mod hook_latency;
mod large_cluster;
mod new_interface;
mod packet_cost;
mod report;
mod stop_latency;

use anyhow::{Result, bail};

/// What can be measured.
const MEASUREMENTS: &str =
    "calm-drain, fence-scale, hook-latency, large-cluster, new-interface, packet-cost, stop-latency";

/// Takes the measurement that the first argument names. The table goes to standard output.
///
/// # Errors
///
/// When a scene cannot be made or does not go as planned, or there is no measurement of that name. A missed target is no
/// error.
pub fn main(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let measure = match arguments.next().as_deref() {
        Some("calm-drain") => calm_drain::measure,
        Some("fence-scale") => fence_scale::measure,
        Some("hook-latency") => hook_latency::measure,
        Some("large-cluster") => large_cluster::measure,
        Some("new-interface") => new_interface::measure,
        Some("packet-cost") => packet_cost::measure,
        Some("stop-latency") => stop_latency::measure,
        Some(name) => bail!("there is no measurement `{name}`; there are: {MEASUREMENTS}"),
        None => bail!("which measurement? There are: {MEASUREMENTS}"),
    };
    if let Some(argument) = arguments.next() {
        bail!("unknown argument `{argument}`: a measurement takes none");
    }
    measure()
}
