//! `lastsyn run`: the sidecar.

use super::{exit::Exit, output::remark};
use crate::config::Config;

pub(super) fn main(_config: Config) -> Exit {
    remark("run: not in this build");
    Exit::Failed
}
