//! `lastsyn check`: the preflight. Tries what the agent will need, changes nothing, and says what to do about each line.
//!
//! It can be run beside an agent: nothing is attached, so that no agent's sensor is disturbed.

mod cluster;
mod pod;
mod sensor;
mod server;
mod table;
mod timing;

use super::{exit::Exit, output};
use crate::{config::Config, sensor::Scope};
use table::{Line, Table};

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
    lines.push(sensor::probes(config));
    lines.push(sensor::counters());
    lines.extend(pod::interfaces().await);
    lines.push(pod::listeners(config));
    lines.push(pod::agent(config).await);
    lines.extend(server::lines(config).await);
    lines.extend(timing::lines(config));
    lines.extend(cluster::lines(config).await);
    lines.push(Line::note(
        "hook",
        "use the exec hook, `lastsyn drain`",
        "an httpGet hook comes from the node, is refused, and would break with the agent",
    ));
    Table(lines)
}
