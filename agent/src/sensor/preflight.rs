//! What `lastsyn check` asks: whether a sensor could be had. Nothing is attached, so that no agent's sensor is disturbed.

use super::{
    capabilities::{Capability, missing},
    cgroup::Cgroup,
    clsact::Clsact,
    object::{Loaded, Wanted},
    packet::Packet,
    tcx::tcx_supported,
};
use crate::core::verdict::Strategy;

/// Loads the programs and runs their self-test, asks for the place where they would run, or opens a packet socket for a
/// moment.
///
/// # Errors
///
/// In words for the operator, if it could not be had.
pub fn preflight(strategy: Strategy) -> Result<(), String> {
    match strategy {
        Strategy::Tcx => {
            programs(Wanted::OnInterfaces)?;
            tcx_supported().map_err(|error| error.to_string())
        }
        Strategy::Cgroup => {
            Loaded::load(Wanted::OnGroup).map_err(|error| error.to_string())?;
            Cgroup::find().map(drop).map_err(|error| error.to_string())
        }
        Strategy::Clsact => {
            programs(Wanted::OnInterfaces)?;
            Clsact::supported().map_err(|error| error.to_string())
        }
        Strategy::Packet => Packet::try_out().map_err(|error| error.to_string()),
        Strategy::Counters => Ok(()),
    }
}

/// The capabilities that the agent has, of those that any sensor needs.
pub fn capabilities() -> (Vec<Capability>, Vec<Capability>) {
    [Capability::Bpf, Capability::NetAdmin, Capability::NetRaw].into_iter().partition(|one| missing(&[*one]).is_none())
}

fn programs(wanted: Wanted) -> Result<(), String> {
    let mut loaded = Loaded::load(wanted).map_err(|error| error.to_string())?;
    loaded.self_test().map_err(|error| error.to_string())
}
