//! A digest over everything in the repository that decides what the kernel programs are, their dependencies aside.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use toml::Table;

use super::digest::Parts;
use crate::workspace;

/// Packages whose files become part of the object.
const PACKAGES: [&str; 2] = ["ebpf/common", "ebpf/probe"];

/// The digest, in hexadecimal, over the packages' files, the parts of the workspace's manifest and of cargo's
/// configuration that reach them, and `recipe`.
pub(crate) fn digest(root: &Path, recipe: &str) -> Result<String> {
    let mut parts = Parts::default();
    parts.add("recipe", recipe.as_bytes());

    let mut manifests = Vec::new();
    for package in PACKAGES {
        for path in workspace::files(&root.join(package))? {
            if path.is_symlink() {
                bail!("{} is a link: the digest of the sources cannot cover what it points to", path.display());
            }
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            parts.add(&name, &content);
        }
        manifests.push(read_table(&root.join(package).join("Cargo.toml"))?);
    }

    let manifest = read_table(&root.join("Cargo.toml"))?;
    parts.add("workspace", canonical(&relevant_settings(&manifest, &manifests))?.as_bytes());
    let configuration = root.join(".cargo/config.toml");
    if configuration.exists() {
        let mut configuration = read_table(&configuration)?;
        configuration.remove("alias");
        parts.add("configuration", canonical(&configuration)?.as_bytes());
    }
    Ok(parts.finish())
}

/// The settings of the workspace's manifest that decide how `packages` are compiled: what they inherit, the release
/// profile, and patches. Lints are not among them, nor the rest's dependencies.
fn relevant_settings(workspace: &Table, packages: &[Table]) -> Table {
    let table =
        |table: &Table, key: &str| table.get(key).and_then(|value| value.as_table()).cloned().unwrap_or_default();
    let section = table(workspace, "workspace");
    let shared = table(&section, "dependencies");

    let mut relevant = Table::new();
    for key in ["version", "edition"] {
        if let Some(value) = table(&section, "package").get(key) {
            relevant.insert(key.to_owned(), value.clone());
        }
    }
    let mut dependencies = Table::new();
    for (name, dependency) in packages.iter().flat_map(|package| table(package, "dependencies")) {
        // What is optional is for the agent's side: the kernel programs take the packages' default features.
        let optional = dependency.get("optional").and_then(toml::Value::as_bool).unwrap_or(false);
        if let Some(value) = shared.get(&name)
            && !optional
        {
            dependencies.insert(name, value.clone());
        }
    }
    relevant.insert("dependencies".to_owned(), dependencies.into());
    relevant.insert("release".to_owned(), table(&table(workspace, "profile"), "release").into());
    relevant.insert("patch".to_owned(), table(workspace, "patch").into());
    relevant
}

fn read_table(path: &Path) -> Result<Table> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("{} is not valid TOML", path.display()))
}

/// The same text for the same settings, however they are laid out: keys sorted, comments gone.
fn canonical(table: &Table) -> Result<String> {
    toml::to_string(table).context("settings cannot be written as TOML")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = r#"
        [workspace.package]
        version = "0.1.0"
        edition = "2024"
        [workspace.dependencies]
        aya = "1"
        aya-ebpf = "2"
        tokio = "3"
        [workspace.lints.rust]
        missing_docs = "warn"
        [profile.release]
        opt-level = "s"
    "#;
    const COMMON: &str = "[dependencies]\naya = { workspace = true, optional = true }\n";
    const PROBE: &str = "[dependencies]\naya-ebpf.workspace = true\n";

    fn repository() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in [
            ("Cargo.toml", WORKSPACE),
            (".cargo/config.toml", "[alias]\nxtask = \"run\"\n"),
            ("ebpf/common/Cargo.toml", COMMON),
            ("ebpf/common/src/lib.rs", "#![no_std]"),
            ("ebpf/probe/Cargo.toml", PROBE),
            ("ebpf/probe/src/main.rs", "#![no_main]"),
        ] {
            write(root.path(), name, content);
        }
        root
    }

    fn write(root: &Path, name: &str, content: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn changes_digest(name: &str, content: &str) -> bool {
        let root = repository();
        let before = digest(root.path(), "recipe").unwrap();
        write(root.path(), name, content);
        digest(root.path(), "recipe").unwrap() != before
    }

    #[test]
    fn what_reaches_the_object_changes_the_digest() {
        assert!(changes_digest("ebpf/common/src/lib.rs", "#![no_std] // more"));
        assert!(changes_digest("ebpf/probe/src/new.rs", ""));
        assert!(changes_digest(
            "ebpf/probe/Cargo.toml",
            "[dependencies]\naya-ebpf = { workspace = true, features = [] }"
        ));
        assert!(changes_digest("Cargo.toml", &WORKSPACE.replace("aya-ebpf = \"2\"", "aya-ebpf = \"2.1\"")));
        assert!(changes_digest("Cargo.toml", &WORKSPACE.replace("opt-level = \"s\"", "opt-level = 3")));
        assert!(changes_digest("Cargo.toml", &WORKSPACE.replace("0.1.0", "0.2.0")));
        assert!(changes_digest(".cargo/config.toml", "[build]\nrustflags = [\"-Copt-level=1\"]\n"));
        let root = repository();
        assert_ne!(digest(root.path(), "one").unwrap(), digest(root.path(), "another").unwrap());
    }

    #[test]
    fn what_does_not_reach_the_object_leaves_the_digest() {
        assert!(!changes_digest("agent/src/main.rs", "fn main() {}"));
        assert!(!changes_digest("ebpf/probe/src/.main.rs.swp", "editor"));
        assert!(!changes_digest("Cargo.toml", &WORKSPACE.replace("tokio = \"3\"", "tokio = \"4\"")));
        assert!(!changes_digest("Cargo.toml", &WORKSPACE.replace("aya = \"1\"", "aya = \"1.1\"")));
        assert!(!changes_digest(
            "Cargo.toml",
            &WORKSPACE.replace("missing_docs = \"warn\"", "missing_docs = \"deny\"")
        ));
        assert!(!changes_digest(".cargo/config.toml", "[alias]\nx = \"run\"\n"));
    }

    #[test]
    fn a_link_is_refused() {
        let root = repository();
        std::os::unix::fs::symlink("main.rs", root.path().join("ebpf/probe/src/link.rs")).unwrap();
        let error = digest(root.path(), "recipe").unwrap_err().to_string();
        assert!(error.contains("link.rs"), "{error}");
    }
}
