//! The sources of the standard library, from which `core` is built for the BPF target.

use anyhow::Result;

use super::cache;
use crate::nightly::Nightly;

/// Where the sources come from, after they have been fetched where they were not there.
pub(crate) fn ensure(nightly: &Nightly) -> Result<String> {
    Ok(cache::stamp(&nightly.library_sources()).unwrap_or_else(|| "of unknown origin".to_owned()))
}
