//! `lastsyn fence`: the cluster's fence, and a look at it.

mod status;

use clap::ArgMatches;

pub(super) use status::main as status;

use super::{exit::Exit, output::remark};
use crate::{config::Config, fence, telemetry::log};

/// Runs the fence.
pub(super) fn main(config: Config) -> Exit {
    let _level = match log::init(&config.log.level, config.log.format) {
        Ok(level) => level,
        Err(error) => {
            remark(format_args!("log.level: {error}"));
            return Exit::Usage;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the fence cannot start: no event loop");
            return Exit::Failed;
        }
    };
    match runtime.block_on(fence::run(config)) {
        Ok(()) => Exit::Done,
        Err(error) => {
            tracing::error!("the fence cannot start: {error}");
            Exit::Failed
        }
    }
}

/// Which of the two a command line means.
pub(super) fn is_status(matches: &ArgMatches) -> Option<&ArgMatches> {
    matches.subcommand_matches("status")
}
