//! SHA-256 digests of what is handed out.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::workspace;

/// Of some bytes, in hexadecimal.
pub(super) fn of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

pub(super) fn of_file(path: &Path) -> Result<String> {
    fs::read(path).map(|bytes| of(&bytes)).with_context(|| format!("cannot read {}", path.display()))
}

/// The digests of all files of a directory, as `sha256sum --check` reads them.
pub(super) fn sums(directory: &Path) -> Result<String> {
    let mut text = String::new();
    for path in workspace::files(directory)? {
        let name = path.strip_prefix(directory).unwrap_or(&path);
        writeln!(text, "{}  {}", of_file(&path)?, name.display()).context("a text takes what is written to it")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("b")).unwrap();
        fs::write(directory.path().join("b/x"), "x").unwrap();
        fs::write(directory.path().join("a"), "").unwrap();
        let wanted = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
                      2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  b/x\n";
        assert_eq!(sums(directory.path()).unwrap(), wanted);
    }
}
