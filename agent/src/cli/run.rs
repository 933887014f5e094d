//! `lastsyn run`: the sidecar.

use super::{exit::Exit, output::remark};
use crate::{config::Config, drive, telemetry::log};

pub(super) fn main(config: Config) -> Exit {
    let level = match log::init(&config.log.level, config.log.format) {
        Ok(level) => level,
        Err(error) => {
            remark(format_args!("log.level: {error}"));
            return Exit::Usage;
        }
    };
    for warning in config.warnings(None) {
        tracing::warn!("{warning}");
    }
    // One thread: the agent is idle nearly always, and shares the pod's memory limit.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the agent cannot start: no event loop");
            return Exit::Failed;
        }
    };
    match runtime.block_on(drive::run(config, level)) {
        Ok(()) => Exit::Done,
        Err(error) => {
            tracing::error!("the agent cannot start: {error}");
            Exit::Failed
        }
    }
}
