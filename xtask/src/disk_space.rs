//! Whether the disk has room for what a verb makes: a test that fails for want of it looks like a fault of what it tests.

use std::path::Path;

use anyhow::{Context as _, Result};

/// What a first `cargo xtask test` makes in a checkout, and the lab's files meanwhile.
const WANTED: u64 = 8 << 30;

/// Warns if a directory's file system has less room than the tests want.
pub(crate) fn warn(directory: &Path) -> Result<()> {
    let free = free(directory)?;
    if free < WANTED {
        eprintln!(
            "warning: {} GiB are free at {}; a first run takes up to {} GiB, and tests fail where the disk is full",
            free >> 30,
            directory.display(),
            WANTED >> 30
        );
    }
    Ok(())
}

fn free(directory: &Path) -> Result<u64> {
    let of = rustix::fs::statvfs(directory)
        .with_context(|| format!("cannot ask how much room is left at {}", directory.display()))?;
    Ok(of.f_bavail.saturating_mul(of.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directorys_free_room_is_known_and_a_missing_one_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(free(directory.path()).unwrap() > 0);
        let error = free(Path::new("/no/such/directory")).unwrap_err().to_string();
        assert!(error.contains("/no/such/directory"), "{error}");
    }
}
