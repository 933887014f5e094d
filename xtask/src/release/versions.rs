//! One version everywhere: in the packages, the chart, and what is written for people.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{Workspace, read};
use crate::workspace;

/// What stands before a version of the product, in words for people and in manifests: an image, a file, the chart as a dependency.
const BEFORE: [&str; 3] = ["lastsyn:", "lastsyn-", "name: lastsyn, version: "];

/// Where such words are looked for, below the repository's root. The changelog tells of older versions.
const TEXTS: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs", "charts"];

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
}

pub(super) fn failures(root: &Path, workspace: &Workspace) -> Result<Vec<String>> {
    let version = &workspace.version;
    let mut failures = packages(root, workspace)?;
    for (file, pointers) in [
        ("charts/lastsyn/Chart.yaml", &["/version", "/appVersion"][..]),
        ("charts/lastsyn/values.yaml", &["/image/tag"]),
        ("charts/examples/haproxy/Chart.yaml", &["/dependencies/0/version"]),
    ] {
        let document: Value =
            serde_saphyr::from_str(&read(root, file)?).with_context(|| format!("{file} is no YAML"))?;
        for pointer in pointers {
            let said = document.pointer(pointer).and_then(Value::as_str).unwrap_or("nothing");
            if said != version {
                failures.push(format!("{file} says {said} at {pointer}, and Cargo.toml {version}"));
            }
        }
    }
    for place in TEXTS.map(|place| root.join(place)) {
        let files = if place.is_dir() { workspace::files(&place)? } else { vec![place] };
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            // In a picture there are no words.
            let bytes = fs::read(&file).with_context(|| format!("cannot read {name}"))?;
            for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
                let others = said(line).into_iter().filter(|said| said != version);
                failures.extend(others.map(|other| format!("{name}:{} says {other}, not {version}", number + 1)));
            }
        }
    }
    Ok(failures)
}

/// The members take the workspace's version and toolchain, and the lock file has them.
fn packages(root: &Path, workspace: &Workspace) -> Result<Vec<String>> {
    let version = &workspace.version;
    let lock: Lock = toml::from_str(&read(root, "Cargo.lock")?).context("Cargo.lock is not as it was")?;
    let mut failures = Vec::new();
    for member in &workspace.members {
        let file = format!("{member}/Cargo.toml");
        let manifest: toml::Table =
            toml::from_str(&read(root, &file)?).with_context(|| format!("{file} is no manifest"))?;
        let package = manifest.get("package").with_context(|| format!("{file} has no package"))?;
        for key in ["version", "rust-version"] {
            let inherited = package.get(key).and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool);
            if inherited != Some(true) {
                failures.push(format!("{file} has a {key} of its own: `{key}.workspace = true`"));
            }
        }
        let name = package.get("name").and_then(toml::Value::as_str).unwrap_or_default();
        match lock.package.iter().find(|locked| locked.name == name) {
            Some(locked) if locked.version == *version => {}
            Some(locked) => failures.push(format!("Cargo.lock has {name} {}, not {version}", locked.version)),
            None => failures.push(format!("Cargo.lock has no {name}")),
        }
    }
    Ok(failures)
}

/// The versions of the product that a line names.
fn said(line: &str) -> Vec<String> {
    let rests = BEFORE.into_iter().flat_map(|before| line.split(before).skip(1));
    let versions = rests.filter_map(|rest| {
        let length = rest.find(|one: char| !(one.is_ascii_digit() || one == '.')).unwrap_or(rest.len());
        let version = rest.get(..length)?.trim_end_matches('.');
        (version.split('.').count() == 3).then(|| version.to_owned())
    });
    versions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_images_files_and_dependencies() {
        for (line, wanted) in [
            ("image: \"lastsyn:0.1.0\"", &["0.1.0"][..]),
            ("oci-archive:target/dist/lastsyn-0.1.0-x86_64.oci.tar docker://R/lastsyn:0.2.0", &["0.2.0", "0.1.0"]),
            ("- {name: lastsyn, version: 1.20.3, repository: x}", &["1.20.3"]),
            ("It is lastsyn:0.1.0.", &["0.1.0"]),
            ("lastsyn-probe, lastsyn: 5 things, haproxy:3.0.1, lastsyn-6d", &[]),
        ] {
            assert_eq!(said(line), wanted, "{line}");
        }
    }
}
