//! The house's rule for the size of files: what a reader must take in at once has at most [`LIMIT`] lines.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::workspace;

/// Lines of a source file, its tests at the end not counted.
const LIMIT: usize = 400;

/// Fails with the names of the files that are too long.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut offenders = Vec::new();
    for path in workspace::files(root)? {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines = lines_without_tests(&text);
        if lines > LIMIT {
            let name = path.strip_prefix(root).unwrap_or(&path);
            offenders.push(format!("{} ({lines})", name.display()));
        }
    }
    if !offenders.is_empty() {
        bail!(
            "these files have more than {LIMIT} lines without their tests, so that they should be several, each named \
             by what it is about: {}",
            offenders.join(", ")
        );
    }
    Ok(())
}

/// The number of lines before `#[cfg(test)] mod tests`, or of all where there is none. Clippy's
/// `items_after_test_module` sees to it that no code comes after the tests.
fn lines_without_tests(text: &str) -> usize {
    text.split("\n#[cfg(test)]\nmod tests {\n").next().unwrap_or_default().lines().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        assert_eq!(lines_without_tests(""), 0);
        assert_eq!(lines_without_tests("fn a() {}\nfn b() {}\n"), 2);
        assert_eq!(lines_without_tests("fn a() {}\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n"), 2);
        assert_eq!(lines_without_tests("#[cfg(test)]\nmod fixtures;\nfn a() {}\n"), 3);
    }

    #[test]
    fn long_files_are_named_with_their_length() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("agent/src")).unwrap();
        fs::create_dir(root.path().join("target")).unwrap();
        let long = "//\n".repeat(LIMIT + 1);
        fs::write(root.path().join("agent/src/short.rs"), "//\n".repeat(LIMIT)).unwrap();
        fs::write(root.path().join("target/generated.rs"), &long).unwrap();
        check(root.path()).unwrap();
        fs::write(root.path().join("agent/src/long.rs"), &long).unwrap();
        let error = check(root.path()).unwrap_err().to_string();
        assert!(error.ends_with("agent/src/long.rs (401)"), "{error}");
    }
}
