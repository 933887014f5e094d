//! `lastsyn check`: the preflight. Tries what the agent will need, changes nothing, and says what to do about each line.
//!
//! It can be run beside an agent: nothing is attached, so that no agent's sensor is disturbed.

mod cluster;
mod hooks;
mod pod;
mod sensor;
mod server;
mod table;
mod timing;

use super::{exit::Exit, output};
use crate::{config::Config, sensor::Scope};
use table::Table;

pub(super) fn main(config: &Config) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::remark(format_args!("check: no event loop: {error}"));
            return Exit::Failed;
        }
    };
    let table = runtime.block_on(table(config));
    output::result(&table);
    if table.failed() { Exit::Failed } else { Exit::Done }
}

async fn table(config: &Config) -> Table {
    let mut lines = vec![sensor::kernel(), sensor::capabilities()];
    lines.extend(sensor::sensors(config.sensor.strategy, Scope::of(config.sensor.network)));
    let (cluster, own) = cluster::lines(config).await;
    lines.push(sensor::probes(config, own.as_ref().map(|own| own.probes.as_slice())));
    lines.push(sensor::counters());
    lines.extend(pod::interfaces().await);
    let (listeners, open) = pod::listeners(config);
    lines.push(listeners);
    lines.push(pod::agent(config).await);
    lines.extend(server::lines(config).await);
    let grace = own.as_ref().and_then(|own| own.grace_period);
    lines.extend(timing::lines(config, grace));
    lines.extend(cluster);
    match &own {
        Some(own) => lines.extend(hooks::lines(own, &open, config)),
        None => lines.push(hooks::unknown(config.server.hook_from)),
    }
    Table(lines)
}
