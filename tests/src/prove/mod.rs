//! Promises that take too long for every run of the tests to be shown in full: `cargo xtask prove NAME`. The tests run the
//! same scenes a few times.

mod balancer;
pub mod fence;
pub mod frozen_node;
pub mod last_on_node;
mod moment;
pub mod parser;
mod record;
pub mod replacement;
pub mod report_page;
pub mod restarts;
pub mod rolling_update;
pub mod rollout;
pub mod syns;

use anyhow::{Result, bail};

pub(crate) use self::record::results;
pub use self::{
    moment::{Dice, wait_until},
    record::Record,
};

/// What can be proven.
const PROOFS: &str = "fence, fence-disrupted, frozen-node, last-on-node, parser, replacement, report-page, restarts, rolling-update, \
                      rollout, servers, syns";

/// Shows the promise that the first argument names. The result goes to standard output, what happens to standard error.
///
/// # Errors
///
/// When the promise does not hold, a scene cannot be made, or there is no proof of that name.
pub fn main(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    match arguments.next().as_deref() {
        Some("fence") => fence::proof::run(arguments),
        Some("fence-disrupted") => fence::disruptions::run(arguments),
        Some("frozen-node") => frozen_node::run(arguments),
        Some("last-on-node") => last_on_node::proof::run(arguments),
        Some("parser") => parser::run(arguments),
        Some("replacement") => replacement::proof::run(arguments),
        Some("report-page") => report_page::run(arguments),
        Some("restarts") => restarts::proof::run(arguments),
        Some("rolling-update") => rolling_update::proof::run(arguments),
        Some("rollout") => rollout::proof::run(arguments),
        Some("servers") => rollout::servers::run(arguments),
        Some("syns") => syns::run(arguments),
        Some(name) => bail!("there is no proof `{name}`; there are: {PROOFS}"),
        None => bail!("which proof? There are: {PROOFS}"),
    }
}
