//! What is built once per machine: directories in the user's cache that are either complete or not there.

use std::{
    env, fs,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::workspace;

/// Beside the content: what it was made from. Written last, so that what has it is whole.
const STAMP: &str = ".made-from";

/// The directory for everything that is kept.
pub(crate) fn directory() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME") {
        Some(directory) if !directory.is_empty() => directory.into(),
        _ => workspace::home()?.join(".cache"),
    };
    let directory = base.join("lastsyn");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(directory)
}

/// Keeps other runs of this tool from filling the cache at the same time, until the file is dropped.
pub(crate) fn lock() -> Result<File> {
    let path = directory()?.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// The stamp of a complete directory; `None` where there is none.
pub(crate) fn stamp(directory: &Path) -> Option<String> {
    fs::read_to_string(directory.join(STAMP)).ok()
}

/// Makes `destination` with what `fill` puts into an empty directory beside it, and takes away what was there before.
/// A run that is stopped half-way leaves what was there as it was.
pub(crate) fn replace(destination: &Path, stamp: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let parent = destination.parent().with_context(|| format!("{} has no parent", destination.display()))?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let unfinished = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(parent)
        .with_context(|| format!("cannot make a directory in {}", parent.display()))?;
    // The directory itself is private to the user; its content need not be.
    let content = unfinished.path().join("content");
    fs::create_dir(&content).with_context(|| format!("cannot make {}", content.display()))?;
    fill(&content)?;
    let mark = content.join(STAMP);
    fs::write(&mark, stamp).with_context(|| format!("cannot write {}", mark.display()))?;
    if destination.exists() {
        let old = unfinished.path().join("old");
        fs::rename(destination, &old).with_context(|| format!("cannot move {} away", destination.display()))?;
    }
    fs::rename(&content, destination).with_context(|| format!("cannot put {} in place", destination.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_directory_replaces_the_old_one() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("tool");
        for version in ["1", "2"] {
            replace(&place, version, |content| Ok(fs::write(content.join(version), "")?)).unwrap();
            assert_eq!(stamp(&place).as_deref(), Some(version));
        }
        assert!(place.join("2").exists() && !place.join("1").exists());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_leaves_the_old_one_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let place = parent.path().join("tool");
        replace(&place, "1", |_| Ok(())).unwrap();
        let failed = replace(&place, "2", |content| {
            fs::write(content.join("half"), "")?;
            anyhow::bail!("no network")
        });
        assert!(failed.is_err());
        assert_eq!(stamp(&place).as_deref(), Some("1"));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_nobody_finished_has_no_stamp() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(stamp(directory.path()), None);
    }
}
