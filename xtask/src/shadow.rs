//! The core in a package of its own: a copy of `agent/src/core` under the same path `crate::core`, with only the
//! dependencies that it names, and without the workspace's lints. It is then built and tested within seconds, where the
//! whole agent takes a minute.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use crate::{object::digest, workspace};

/// How the tests are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Built at once, and without the tests that play thousands of histories. Most mutants are caught so, in two seconds.
    Quick,
    /// All tests, on a build in which the long ones take two seconds together.
    Thorough,
}

/// What plays thousands of histories.
const LONG: [&str; 4] = ["oracle", "properties", "rolling_update", "simpler_rules"];

impl Effort {
    /// The profile of the package.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Quick => "dev",
            Self::Thorough => "thorough",
        }
    }

    /// Tests that take longer are kept from ending by the mutant: on an idle machine they take one second, and three.
    pub(crate) fn timeout_seconds(self) -> &'static str {
        match self {
            Self::Quick => "20",
            Self::Thorough => "60",
        }
    }

    /// What `cargo test` is told: the one test that reads the agent's manifest is not for this package.
    pub(crate) fn test_arguments(self) -> Vec<&'static str> {
        let skipped = LONG.into_iter().filter(|_| self == Self::Quick).chain(["core::tests::pure"]);
        ["--lib", "--"].into_iter().chain(skipped.flat_map(|test| ["--skip", test])).collect()
    }
}

/// A file of the core that is no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Below `agent/src/core`.
    pub(crate) name: String,
    /// Of its text.
    pub(crate) digest: String,
}

/// The package.
pub(crate) struct Shadow {
    pub(crate) directory: PathBuf,
}

/// Every file of the core but for the tests, in the order of their names.
pub(crate) fn sources(core: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in workspace::files(core)? {
        let name = path.strip_prefix(core).unwrap_or(&path).to_string_lossy().into_owned();
        if name.split('/').any(|part| part == "tests") || path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let digest = digest::of_bytes(&text).chars().take(16).collect();
        sources.push(Source { name, digest });
    }
    Ok(sources)
}

impl Shadow {
    /// Makes it below `target`, where what was built of it before is still there.
    pub(crate) fn make(root: &Path) -> Result<Self> {
        let directory = root.join("target/core");
        let copy = directory.join("src/core");
        if copy.exists() {
            fs::remove_dir_all(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        }
        let core = root.join("agent/src/core");
        let mut text = String::new();
        for path in workspace::files(&core)? {
            let to = copy.join(path.strip_prefix(&core).unwrap_or(&path));
            let parent = to.parent().unwrap_or(&copy);
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            fs::copy(&path, &to).with_context(|| format!("cannot copy {}", path.display()))?;
            text += &fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        }
        let read = |path: &str| -> Result<Table> {
            let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
            toml::from_str(&text).with_context(|| format!("{path} is no manifest"))
        };
        let manifest = manifest(&read("Cargo.toml")?, &read("agent/Cargo.toml")?, &text)?;
        write(&directory.join("Cargo.toml"), &manifest)?;
        write(&directory.join("src/lib.rs"), "pub mod core;\n")?;
        // The same versions as everywhere; what is not needed here goes from the copy.
        fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).context("cannot copy Cargo.lock")?;
        Ok(Self { directory })
    }

    /// All tests, on the core as it is.
    pub(crate) fn tests(&self) -> Command {
        let mut tests = workspace::cargo(&self.directory);
        tests.args(["test", "--profile", Effort::Thorough.profile()]).args(Effort::Thorough.test_arguments());
        tests
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Of the agent's dependencies those that the core's text names, as the workspace has them.
fn manifest(workspace: &Table, agent: &Table, text: &str) -> Result<String> {
    let versions = workspace
        .get("workspace")
        .and_then(|table| table.get("dependencies"))
        .and_then(Value::as_table)
        .context("Cargo.toml has no [workspace.dependencies]")?;
    let named = |section: &str| -> Table {
        let names = agent.get(section).and_then(Value::as_table).into_iter().flat_map(Table::keys);
        let used = names.filter(|name| text.contains(&format!("{}::", name.replace('-', "_"))));
        used.filter_map(|name| Some((name.clone(), versions.get(name)?.clone()))).collect()
    };
    let edition = workspace.get("workspace").and_then(|table| table.get("package")?.get("edition").cloned());
    let table = |entries: &[(&str, Value)]| -> Table {
        entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
    };
    let quick = table(&[("debug", Value::from(false))]);
    let thorough = table(&[("inherits", Value::from("dev")), ("opt-level", Value::from(1))]);
    let profiles =
        table(&[(Effort::Quick.profile(), Value::from(quick)), (Effort::Thorough.profile(), Value::from(thorough))]);
    let package = table(&[
        ("name", Value::from("lastsyn-core")),
        ("version", Value::from("0.0.0")),
        ("edition", edition.context("Cargo.toml has no edition for the workspace")?),
    ]);
    let whole = table(&[
        ("package", Value::from(package)),
        ("workspace", Value::from(Table::new())),
        ("dependencies", Value::from(named("dependencies"))),
        ("dev-dependencies", Value::from(named("dev-dependencies"))),
        ("profile", Value::from(profiles)),
    ]);
    toml::to_string(&whole).context("the manifest cannot be written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dependencies_that_the_core_names_are_taken() {
        let workspace = toml::from_str(
            "[workspace.package]\nedition = \"2024\"\n[workspace.dependencies]\nserde = { version = \"1\", features = \
             [\"derive\"] }\ntokio = \"1\"\nproptest = \"1.12\"\n",
        )
        .unwrap();
        let agent = toml::from_str(
            "[dependencies]\nserde.workspace = true\ntokio.workspace = true\n[dev-dependencies]\nproptest.workspace = \
             true\n",
        )
        .unwrap();
        let text = "use serde::Serialize; // no tokio here\nuse proptest::prelude::*;";
        let made: Table = toml::from_str(&manifest(&workspace, &agent, text).unwrap()).unwrap();
        assert_eq!(made["dependencies"].as_table().unwrap().keys().collect::<Vec<_>>(), ["serde"]);
        assert_eq!(made["dependencies"]["serde"]["features"][0].as_str(), Some("derive"));
        assert_eq!(made["dev-dependencies"]["proptest"].as_str(), Some("1.12"));
        assert!(made["workspace"].as_table().unwrap().is_empty());
    }

    #[test]
    fn tests_are_no_sources_and_a_change_changes_the_digest() {
        let core = tempfile::tempdir().unwrap();
        for directory in ["tests", "confirm/tests"] {
            fs::create_dir_all(core.path().join(directory)).unwrap();
            fs::write(core.path().join(directory).join("a.rs"), "").unwrap();
        }
        fs::write(core.path().join("confirm/syncs.rs"), "1").unwrap();
        let before = sources(core.path()).unwrap();
        assert_eq!(before.iter().map(|source| source.name.as_str()).collect::<Vec<_>>(), ["confirm/syncs.rs"]);
        fs::write(core.path().join("confirm/syncs.rs"), "2").unwrap();
        assert_ne!(sources(core.path()).unwrap(), before);
    }
}
